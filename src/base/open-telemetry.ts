/**
 * Tracing with OpenTelemetry. Its SDK is an optional peer dependency, and only this file imports it. The SDK reads its
 * `OTEL_*` variables itself.
 */
import { createRequire } from 'node:module'
import type { api as Otel } from '@opentelemetry/sdk-node'
import { within } from './clock.js'
import type { Attributes, Span, Tracing } from './tracing.js'

type Sdk = typeof import('@opentelemetry/sdk-node')

type Packages = Pick<Sdk, 'api' | 'resources' | 'NodeSDK'>
type Api = Packages['api']

const NAME = 'platform-auth-server'
const LAST_EXPORT_MS = 3000
const PROBLEM_PAUSE_MS = 60_000

/**
 * Loads the OpenTelemetry SDK and starts it. If `node --import` has already started an SDK, uses that SDK. Throws if
 * the package is missing or cannot be loaded.
 * @param version the version of this program
 * @param onProblem called at most once a minute when the SDK reports a problem, for example that the collector cannot
 *   be reached
 */
export function openTracing(version: string, onProblem: (message: string) => void): Tracing {
  const packages = loadPackages()
  const { api } = packages
  const sdk = hasProvider(api) ? undefined : startSdk(packages, version, onProblem)
  return createTracing(api, version, async () => {
    if (sdk) await within(LAST_EXPORT_MS, sdk.shutdown()).catch(() => {})
  })
}

/**
 * The other packages are dependencies of the SDK, so they are resolved from the SDK's folder. An operator then has to
 * install only the SDK, and this file uses the same API package as the SDK. The SDK has not exported these packages
 * since version 0.300.
 */
function loadPackages(): Packages {
  const requireFromSdk = createRequire(import.meta.resolve('@opentelemetry/sdk-node'))
  return {
    ...(requireFromSdk('@opentelemetry/sdk-node') as Pick<Sdk, 'NodeSDK'>),
    api: requireFromSdk('@opentelemetry/api') as Sdk['api'],
    resources: requireFromSdk('@opentelemetry/resources') as Sdk['resources']
  }
}

function hasProvider({ trace, ProxyTracerProvider }: Api): boolean {
  const provider = trace.getTracerProvider()
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer(NAME) !== undefined
}

function startSdk({ NodeSDK, resources, api }: Packages, version: string, onProblem: (message: string) => void) {
  const { defaultResource, resourceFromAttributes, envDetector, hostDetector } = resources
  const sdk = new NodeSDK({
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence over these values.
    resource: defaultResource().merge(resourceFromAttributes({ 'service.name': NAME, 'service.version': version })),
    // The process detector is left out, because it records the command line, which may contain a secret.
    resourceDetectors: [envDetector, hostDetector],
    instrumentations: [],
    metricReaders: [],
    logRecordProcessors: []
  })
  reportProblems(api, onProblem)
  sdk.start()
  return sdk
}

function reportProblems({ diag, DiagLogLevel }: Api, onProblem: (message: string) => void): void {
  let reportedAt = Number.NEGATIVE_INFINITY
  const report = (message: string) => {
    if (performance.now() - reportedAt < PROBLEM_PAUSE_MS) return
    reportedAt = performance.now()
    onProblem(message)
  }
  const ignore = () => {}
  const logger = { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore }
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
}

// If the collector hangs, thousands of spans wait in memory, so the values of their attributes must be short.
const MAX_ATTRIBUTE_LENGTH = 1024

/** Shortens long strings. The result is a copy, because a slice would keep the whole string in memory. */
function shortened(attributes: Attributes): Otel.Attributes {
  const cut = (value: unknown) =>
    typeof value === 'string' && value.length > MAX_ATTRIBUTE_LENGTH
      ? Buffer.from(value.slice(0, MAX_ATTRIBUTE_LENGTH)).toString()
      : value
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, cut(value)])) as Otel.Attributes
}

function createTracing(api: Api, version: string, close: () => Promise<void>): Tracing {
  const { context, propagation, trace, SpanKind, SpanStatusCode } = api
  const tracer = trace.getTracer(NAME, version)
  const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT }
  const contexts = new WeakMap<Span, Otel.Context>()

  function wrap(span: Otel.Span, ownContext: Otel.Context): Span {
    const wrapped: Span = {
      traceId: span.spanContext().traceId,
      get headers() {
        const carrier: Record<string, string> = {}
        propagation.inject(ownContext, carrier)
        // No other headers are sent. OTEL_PROPAGATORS may add headers such as baggage, which can contain personal data.
        const { traceparent, tracestate } = carrier
        return { ...(traceparent !== undefined && { traceparent }), ...(tracestate !== undefined && { tracestate }) }
      },
      rename: name => void span.updateName(name),
      set: attributes => void span.setAttributes(shortened(attributes)),
      end(error) {
        if (!span.isRecording()) return
        if (error !== undefined) span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR })
        span.end()
      }
    }
    contexts.set(wrapped, ownContext)
    return wrapped
  }

  return {
    start(name, kind, attributes, incoming) {
      const active = context.active()
      // If Node's HTTP server is instrumented as well, its span has continued the trace already.
      const continues = incoming && trace.getSpan(active) === undefined
      const parent = continues ? propagation.extract(active, incoming) : active
      const span = tracer.startSpan(name, { kind: kinds[kind], attributes: shortened(attributes) }, parent)
      return wrap(span, trace.setSpan(parent, span))
    },
    within: (span, work) => context.with(contexts.get(span) ?? context.active(), work),
    close
  }
}
