// `npm run simulate:replicas` simulates many processes that share one Redis, with the service times of Redis that
// `npm run bench -- --only replicas --record` has measured. It prints the results as JSON. `--record` writes them to
// bench/capacity/figures.json and docs/scale.md.
import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { simulateLoss, simulateQuota } from './many-replicas.js'

const CAPACITY = new URL('../../bench/capacity/', import.meta.url)
const FIGURES = new URL('figures.json', CAPACITY)
const SCRIPTS_OF_REFRESH = 4

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'loss,quota' },
    replicas: { type: 'string', default: '100,300,1000' },
    sessions: { type: 'string', default: '100000' },
    observed: { type: 'string', default: '40' },
    due: { type: 'string', default: '3000' },
    quota: { type: 'string', default: '500' },
    record: { type: 'boolean', default: false }
  }
})
const kinds = values.only.split(',')
const replicas = values.replicas.split(',').map(Number)
const service = serviceTimes()
const results: Record<string, object[]> = {}

if (kinds.includes('loss')) {
  for (const count of replicas) {
    const people = { sessions: Number(values.sessions), secondsBetweenRequests: 60, secondsBetweenRefreshes: 2730 }
    const options = { replicas: count, service, ...people, outageSeconds: 5, observedSeconds: Number(values.observed) }
    add('loss', { ...options, result: await simulateLoss(options) })
  }
}
if (kinds.includes('quota')) {
  for (const count of replicas) {
    const people = { sessions: Number(values.due), callsPerMinute: Number(values.quota) }
    const options = { replicas: count, service, ...people, observedMinutes: 60 }
    add('quota', { ...options, result: await simulateQuota(options) })
  }
}
if (values.record) {
  const { record } = await import(new URL('report.js', CAPACITY).href)
  record(results)
}

function add(kind: string, run: object): void {
  process.stdout.write(`${JSON.stringify(run)}\n`)
  results[kind] = [...(results[kind] ?? []), run]
}

function serviceTimes() {
  if (!existsSync(FIGURES)) throw new Error('Run `npm run bench -- --only replicas --record` first.')
  const { busy } = JSON.parse(readFileSync(FIGURES, 'utf8')).replicas
  return {
    scriptMs: busy.refresh.redisMicros / SCRIPTS_OF_REFRESH / 1000,
    deliveryMs: busy.delivery.redisMicros / 1000
  }
}
