import type { Logger } from 'pino'
import type { Environment } from '../config/sources.js'
import { version } from '../support/version.js'
import type { Tracing } from '../telemetry/tracing.js'
import { messageOf } from './errors.js'

/**
 * Starts tracing if the `OTEL_*` variables ask for it. If the SDK of OpenTelemetry is missing, the log says how to
 * install it, and the server runs without tracing. A hosting platform may set these variables for all programs, so a
 * missing SDK does not stop the start.
 */
export async function startTracing(env: Environment, log: Pick<Logger, 'warn'>): Promise<Tracing | undefined> {
  const variable = tracingVariable(env)
  if (variable === undefined) return undefined
  const onProblem = (problem: string) =>
    log.warn({ event: 'tracing_problem', problem }, 'OpenTelemetry reports a problem; some traces may be lost')
  try {
    const { openTracing } = await import('../telemetry/open-telemetry.js')
    return openTracing(version(), onProblem)
  } catch (error) {
    const message =
      `${variable} is set, but the SDK of OpenTelemetry cannot be loaded, so no traces are sent. ` +
      `Install it next to platform-auth-server: ${installLine(process.versions.node)}`
    log.warn({ event: 'tracing_unavailable', reason: messageOf(error) }, message)
    return undefined
  }
}

/**
 * Returns the variable that switches tracing on, or undefined. An empty value counts as not set, as the specification of
 * OpenTelemetry says.
 */
export function tracingVariable(env: Environment): string | undefined {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return undefined
  const names = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_TRACES_EXPORTER']
  return names.find(name => env[name])
}

/** @param node the version of Node. SDK versions after 0.223 need Node 22.15. */
export function installLine(node: string): string {
  const [major = 0, minor = 0] = node.split('.').map(Number)
  const isNew = major > 22 || (major === 22 && minor >= 15)
  return `npm install @opentelemetry/sdk-node${isNew ? '' : '@0.223'}`
}
