/** Formats the results of each measurement. */
import { availableParallelism } from 'node:os'
import { toolOf } from './lineup.js'
import { table } from './report.js'
import { scenarios } from './scenarios.js'

// Smaller differences between two readings are normal variations of the heap.
const NOTEWORTHY_GROWTH = 0.05

/**
 * @param {string} name
 * @param {import('./scenarios.js').Scenario} scenario
 * @param {Awaited<ReturnType<typeof import('./throughput.js').measureThroughput>>} result
 */
export function throughputTable(name, scenario, { rows, cookieBytes }) {
  const { path, status, title, isForWrk } = scenario
  const load = isForWrk ? `; load by ${toolOf(scenario)}` : ''
  const cookie = cookieBytes > 0 ? `; Cookie header of ${cookieBytes} bytes` : ''
  const head = ['', 'req/s', 'ratio', 'CPU us/req', 'ratio', 'p99 ms', 'core busy']
  const cells = rows.map(({ name, rate, rateRatio, cpuMicros, cpuRatio, p99, busy }) => [
    name,
    Math.round(rate),
    rateRatio.toFixed(2),
    cpuMicros.toFixed(1),
    cpuRatio.toFixed(2),
    p99,
    `${Math.round(busy * 100)}%`
  ])
  return `\n## ${name}: \`GET ${path}\`, ${status}; ${title}${cookie}${load}\n\n${table(head, cells)}`
}

/** @param {Awaited<ReturnType<typeof import('./startup.js').measureStartup>>} rows */
export function startupTable(rows) {
  const [reference] = rows
  const head = ['', 'to listening', 'ratio', 'to the first answer', 'ratio', 'to the end']
  const cells = rows.map(row => [
    row.name,
    ...['listening', 'answered'].flatMap(event => [
      milliseconds(row[event]),
      row[event] === undefined ? '' : (row[event] / reference[event]).toFixed(2)
    ]),
    milliseconds(row.ended)
  ])
  return `\n## startup: milliseconds from starting the process\n\n${table(head, cells)}`
}

/**
 * @param {Awaited<ReturnType<typeof import('./memory.js').measureMemory>>} rows
 * @param {number} requests
 */
export function memoryTable(rows, requests) {
  const cells = rows.map(({ scenario, name, atStart, halfway, atEnd, ratio }) => [
    `${scenario}, ${name}`,
    ...[atStart, halfway, atEnd].map(Math.round),
    ratio.toFixed(2)
  ])
  const title = `\n## memory: MiB resident before, in the middle of and after ${requests} requests\n\n`
  return title + table(['', 'start', 'middle', 'end', 'ratio'], cells)
}

/** @param {Awaited<ReturnType<typeof import('./scale.js').measureScale>>} result */
export function scaleTable(result) {
  if (!result) return '\n## scale: skipped, neither redis-server nor valkey-server is installed\n'
  const { askingAtOnce, providerCalls } = result
  const title = 'processes that share a Redis, an active dual session of 2 kB'
  return `${throughputTable('scale', { ...scenarios.token, title }, result)}
On ${availableParallelism()} cores, which the server processes share with their load and with Redis; no process is pinned.
For several processes together, p99 is the worst value and core busy is the sum.
${askingAtOnce} requests at once with one expired session, spread over the processes, once a round: all 200, ${providerCalls} provider calls each time.
`
}

/** @param {Awaited<ReturnType<typeof import('./soak.js').measureSoak>>} result */
export function soakTable({ resident, statuses, refreshes, calls, sessions, expiredEvery, keepSeconds }) {
  const [, , middle, , end] = resident
  const growth = (end - middle) / middle
  const change = `${growth < 0 ? '' : '+'}${(growth * 100).toFixed(1)}%`
  const verdict = growth > NOTEWORTHY_GROWTH ? 'grew' : 'did not grow'
  const answers = Object.entries(statuses).map(([status, count]) => `${count} of ${status}`)
  const title = `\n## soak: MiB resident over ${sessions} sessions in random order, one expired in every ${expiredEvery} requests\n\n`
  const cells = [['platform-auth-server', ...resident.map(value => value.toFixed(1))]]
  return `${title}${table(['', 'start', '1/4', '2/4', '3/4', 'end'], cells)}
Answers: ${answers.join(', ')}. ${refreshes} refreshes, ${calls} provider calls. Refreshed sessions were kept for ${keepSeconds} s.
The second half ${verdict}: ${change}.
`
}

/** @param {Awaited<ReturnType<typeof import('./streams.js').measureStreams>>} rows */
export function streamsTable(rows) {
  const cells = rows.map(({ name, before, most, seconds, cpuSeconds }) => [
    name,
    Math.round(before),
    Math.round(most),
    seconds.toFixed(1),
    cpuSeconds.toFixed(1)
  ])
  const title = '\n## streams: MiB resident before and at most, while the proxy carries a body\n\n'
  return title + table(['', 'before', 'most', 'seconds', 'CPU s'], cells)
}

function milliseconds(value) {
  return value === undefined ? '' : Math.round(value)
}
