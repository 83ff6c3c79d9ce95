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
    // Replicas and sessions of each run.
    loss: { type: 'string', default: '100:100000,100:300000,300:100000,1000:100000' },
    observed: { type: 'string', default: '40' },
    // Replicas, and sessions that are due in the same minute.
    quota: { type: 'string', default: '100:3000,1000:3000' },
    calls: { type: 'string', default: '500' },
    record: { type: 'boolean', default: false }
  }
})
const kinds = values.only.split(',')
const service = serviceTimes()
const results: Record<string, object[]> = {}

if (kinds.includes('loss')) {
  for (const run of runsOf(values.loss)) {
    const times = { secondsBetweenRequests: 60, secondsBetweenRefreshes: 2730, outageSeconds: 5 }
    const options = { ...run, service, ...times, observedSeconds: Number(values.observed) }
    add('loss', { ...options, result: await simulateLoss(options) })
  }
}
if (kinds.includes('quota')) {
  for (const run of runsOf(values.quota)) {
    const options = { ...run, service, callsPerMinute: Number(values.calls), observedMinutes: 60 }
    add('quota', { ...options, result: await simulateQuota(options) })
  }
}
if (values.record) {
  const { record } = await import(new URL('report.js', CAPACITY).href)
  record(results)
}

function runsOf(text: string): { replicas: number; sessions: number }[] {
  return text.split(',').map(run => {
    const [replicas = 0, sessions = 0] = run.split(':').map(Number)
    return { replicas, sessions }
  })
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
