// A stand-in for an OpenTelemetry collector. It accepts traces by OTLP over HTTP in JSON.
import http from 'node:http'
import { text } from 'node:stream/consumers'
import type { ExecutionContext } from 'ava'
import { eventually } from './eventually.js'
import { listen } from './ports.js'

type Value = { readonly stringValue?: string; readonly intValue?: number }

interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  /** Nanoseconds since the epoch. */
  readonly startTimeUnixNano: string
  /** 2 is a request to the server, 3 a call of the server. */
  readonly kind: number
  readonly attributes: readonly { readonly key: string; readonly value: Value }[]
  /** A code of 2 is an error. */
  readonly status: { readonly code?: number }
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: ReceivedSpan['attributes'] }
    readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[]
  }[]
}

export type Collector = Awaited<ReturnType<typeof startCollector>>

export async function startCollector(t: Pick<ExecutionContext, 'teardown'>) {
  /** Everything that was received, as it was sent. */
  const bodies: string[] = []
  const server = http.createServer(async (request, response) => {
    const body = await text(request)
    if (request.url === '/v1/traces') bodies.push(body)
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}')
  })
  // The exporter drops its spans if the connection that it uses again is closed at the same moment.
  server.keepAliveTimeout = 600_000
  const port = await listen(t, server)
  const resourceSpans = () => bodies.flatMap(body => (JSON.parse(body) as Export).resourceSpans)
  const spans = () => resourceSpans().flatMap(({ scopeSpans }) => scopeSpans.flatMap(scope => scope.spans))
  const find = (traceId: string, name: string) =>
    spans().find(span => span.traceId === traceId && span.name === name) as ReceivedSpan
  return {
    url: `http://127.0.0.1:${port}`,
    bodies,
    spans,
    resource() {
      const attributes = resourceSpans()[0]?.resource.attributes ?? []
      return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]))
    },
    /** Resolves with the span of this name in this trace, as soon as it was received. */
    async received(traceId: string, name: string) {
      await eventually(() => find(traceId, name) !== undefined)
      return find(traceId, name)
    },
    /** Resolves with the names of the spans that began in this span, as soon as there are `count`, in the order of their start. */
    async childrenOf({ spanId }: ReceivedSpan, count: number) {
      const children = () => spans().filter(({ parentSpanId }) => parentSpanId === spanId)
      await eventually(() => children().length >= count)
      const startOf = (span: ReceivedSpan) => BigInt(span.startTimeUnixNano)
      return children()
        .sort((a, b) => Number(startOf(a) - startOf(b)))
        .map(({ name }) => name)
    }
  }
}

export function attributesOf({ attributes }: ReceivedSpan): Record<string, string | number | undefined> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]))
}
