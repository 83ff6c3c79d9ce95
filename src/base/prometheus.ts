/** Collects the metrics for Prometheus. The server loads this file only if the setting `metrics.address` has a value. */
import http from 'node:http'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { closeServer, listen } from './listener.js'
import { COUNTERS, GAUGES, HISTOGRAMS, type Metrics } from './metrics.js'

const PREFIX = 'platform_auth_'

interface Address {
  readonly port: number
  readonly host: string | undefined
}

type Labels = Record<string, string | number>

/** @param version the version of this program, for the metric `build_info` */
export function createPrometheusMetrics(version: string) {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const optionsOf = (name: string, [help, labels]: readonly [string, readonly string[], ...unknown[]]) => ({
    name: PREFIX + name,
    help,
    labelNames: [...labels],
    registers
  })
  const counters = mapRows(COUNTERS, (name, row) => new Counter(optionsOf(name, row)))
  const histograms = mapRows(
    HISTOGRAMS,
    (name, row) => new Histogram({ ...optionsOf(name, row), buckets: [...row[2]] })
  )
  const watched = new Map<string, (readonly [value: () => number | undefined, labels: Labels])[]>()

  const metrics: Metrics = {
    count: (name, labels) => counters[name].inc(defined(labels)),
    observe: (name, value, labels) => histograms[name].observe(defined(labels), value),
    watch(name, value, labels) {
      const values = watched.get(name) ?? []
      values.push([value, defined(labels)])
      if (watched.has(name)) return
      watched.set(name, values)
      new Gauge({
        ...optionsOf(name, GAUGES[name]),
        collect() {
          for (const [current, labels] of values) {
            const number = current()
            if (number === undefined) this.remove(labels)
            else this.set(labels, number)
          }
        }
      })
    }
  }
  metrics.watch('build_info', () => 1, { version, node_version: process.versions.node })
  return {
    ...metrics,
    /** Returns the metrics in the text exposition format. */
    text: () => registry.metrics(),
    /**
     * Serves `/metrics` on a separate port, so that the public port does not expose the metrics. If the port cannot
     * be opened, rejects with Node's error, which then has the property `listener: 'metrics'`, so that the caller can
     * name the setting.
     * @example const scrapes = await metrics.listen({ port: 9464, host: '127.0.0.1' })
     */
    listen: (address: Address) => listenForScrapes(registry, address)
  }
}

function mapRows<Rows extends object, Metric>(
  rows: Rows,
  create: (name: string, row: Rows[keyof Rows]) => Metric
): Record<keyof Rows, Metric> {
  const entries = Object.entries(rows).map(([name, row]) => [name, create(name, row)] as const)
  return Object.fromEntries(entries) as Record<keyof Rows, Metric>
}

function defined(labels: object = {}): Labels {
  return Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== undefined))
}

async function listenForScrapes(registry: Registry, { port, host }: Address) {
  const server = http.createServer(async (request, response) => {
    response.setHeader('X-Content-Type-Options', 'nosniff')
    // Prometheus adds the `params` of its configuration as a query.
    const [path] = request.url?.split('?', 1) ?? []
    if (!['GET', 'HEAD'].includes(request.method ?? '') || path !== '/metrics') {
      response.writeHead(404).end()
      return
    }
    response.writeHead(200, { 'Content-Type': registry.contentType, 'Cache-Control': 'no-store' })
    // Node sends no body for HEAD.
    response.end(await registry.metrics())
  })
  return {
    port: await listen(server, { port, host, listener: 'metrics' }),
    close: () => closeServer(server)
  }
}
