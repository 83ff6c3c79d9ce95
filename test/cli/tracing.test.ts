import test from 'ava'
import { tracingVariable } from '#src/cli/commands/start.js'

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }

const cases: readonly (readonly [env: Record<string, string>, variable: string | undefined])[] = [
  [{}, undefined],
  [{ OTEL_SERVICE_NAME: 'auth', OTEL_TRACES_SAMPLER: 'always_on' }, undefined],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }, undefined],
  [endpoint, 'OTEL_EXPORTER_OTLP_ENDPOINT'],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c:4318/v1/traces' }, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'],
  [{ OTEL_TRACES_EXPORTER: 'console' }, 'OTEL_TRACES_EXPORTER'],
  [{ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }, undefined],
  [{ ...endpoint, OTEL_SDK_DISABLED: 'TRUE' }, undefined],
  [{ ...endpoint, OTEL_SDK_DISABLED: 'false' }, 'OTEL_EXPORTER_OTLP_ENDPOINT']
]

test('the variables of OpenTelemetry switch tracing on or off', t => {
  for (const [env, variable] of cases) t.is(tracingVariable(env), variable, JSON.stringify(env))
})
