/** Formats the results of each measurement. */
import { availableParallelism } from 'node:os'
import { toolOf } from './lineup.js'
import { table } from './report.js'
import { PROGRAMS, scenarios } from './scenarios.js'

// Smaller differences between two readings are normal variations of the heap.
const NOTEWORTHY_GROWTH = 0.05

/**
 * @param {string} name
 * @param {import('./scenarios.js').Scenario} scenario
 * @param {Awaited<ReturnType<typeof import('./throughput.js').measureThroughput>>} result
 */
export function throughputTable(name, scenario, { rows, cookieBytes }) {
  const { path, status, title, isForWrk } = scenario
  const load = isForWrk ? `, requests sent by ${toolOf(scenario)}` : ''
  const cookie = cookieBytes > 0 ? `, Cookie header of ${cookieBytes} bytes` : ''
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
  return `\n## ${name}: \`GET ${path}\`, status ${status}, ${title}${cookie}${load}\n\n${table(head, cells)}${notesOn(rows)}`
}

/** Explains the programs in a table, because they do a different job than this server. */
function notesOn(rows) {
  const notes = rows.filter(({ name }) => name in PROGRAMS).map(({ name }) => `${name} ${PROGRAMS[name]}\n`)
  return notes.length > 0 ? `\nThese programs do a different job than this server:\n\n${notes.join('\n')}` : ''
}

/** @param {Awaited<ReturnType<typeof import('./startup.js').measureStartup>>} rows */
export function startupTable(rows) {
  const [reference] = rows
  const head = ['', 'until listening', 'ratio', 'until first response', 'ratio', 'until exit']
  const cells = rows.map(row => [
    row.name,
    ...['listening', 'answered'].flatMap(event => [
      milliseconds(row[event]),
      row[event] === undefined ? '' : (row[event] / reference[event]).toFixed(2)
    ]),
    milliseconds(row.ended)
  ])
  return `\n## startup: milliseconds since the start of the process\n\n${table(head, cells)}`
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
  const title = `\n## memory: resident MiB before, in the middle of and after ${requests} requests\n\n`
  return title + table(['', 'start', 'middle', 'end', 'ratio'], cells) + notesOn(rows)
}

/** @param {Awaited<ReturnType<typeof import('./scale.js').measureScale>>} result */
export function scaleTable(result) {
  if (!result) return '\n## scale: skipped, because neither redis-server nor valkey-server is installed\n'
  const { askingAtOnce, providerCalls } = result
  const title = 'processes that share a Redis, with an active session of 2 kB in dual mode'
  return `${throughputTable('scale', { ...scenarios.token, title }, result)}
The server processes, the load generators and Redis share ${availableParallelism()} cores. No process is pinned to a core.
For several processes together, p99 is the worst value and core busy is the sum.
In each round, ${askingAtOnce} simultaneous requests with one expired session were spread over the processes.
All of them got 200, and the provider got ${providerCalls} calls in each round.
`
}

/** @param {Awaited<ReturnType<typeof import('./session-store.js').measureSessionStore>>} rows */
export function sessionStoreTable(rows) {
  const title = '\n## session-store: the setting `session.store`, one active session in dual mode\n\n'
  if (!rows) return `${title}skipped, because neither redis-server nor valkey-server is installed\n`
  const head = [
    '',
    'req/s',
    'CPU us/req',
    'ratio',
    'p99 ms',
    'Cookie bytes',
    'to Redis',
    'from Redis',
    'Redis CPU us/req'
  ]
  const cells = rows.map(({ name, rate, cpuMicros, cpuRatio, p99, cookieBytes, received, sent, redisMicros }) => [
    name,
    Math.round(rate),
    cpuMicros.toFixed(1),
    cpuRatio.toFixed(2),
    p99,
    cookieBytes,
    ...[received, sent].map(Math.round),
    redisMicros.toFixed(1)
  ])
  return title + table(head, cells)
}

const REFRESH_ROWS = {
  parts: 'two got calls and four scripts',
  koa: 'bare Koa with these calls and scripts',
  server: 'platform-auth-server with Redis',
  active: 'platform-auth-server with Redis, request without a refresh',
  calls: 'two got calls',
  serverInMemory: 'platform-auth-server without Redis'
}

/** @param {Awaited<ReturnType<typeof import('./refresh-cost.js').measureRefreshCost>>} result */
export function refreshCostTable(result) {
  const title = '\n## refresh-cost: CPU time of a refresh in dual mode, compared with its calls and scripts alone\n\n'
  if (!result) return `${title}skipped, because neither redis-server nor valkey-server is installed\n`
  const head = ['', 'requests/s', 'CPU us/request', 'times the first line', 'core busy']
  const cellsOf = rows =>
    rows.map(({ name, rate, cpuMicros, cpuRatio, busy }) => [
      REFRESH_ROWS[name],
      Math.round(rate),
      cpuMicros.toFixed(0),
      (1 / cpuRatio).toFixed(2),
      `${Math.round(busy * 100)}%`
    ])
  return `${title}${table(head, cellsOf(result.withRedis))}\n${table(head, cellsOf(result.inMemory))}`
}

/** @param {Awaited<ReturnType<typeof import('./soak.js').measureSoak>>} result */
export function soakTable({ resident, statuses, refreshes, calls, sessions, expiredEvery }) {
  const [, , middle, , end] = resident
  const growth = (end - middle) / middle
  const change = `${growth < 0 ? '' : '+'}${(growth * 100).toFixed(1)}%`
  const verdict = growth > NOTEWORTHY_GROWTH ? 'grew' : 'did not grow'
  const answers = Object.entries(statuses).map(([status, count]) => `${count} with status ${status}`)
  const title = `\n## soak: resident MiB, ${sessions} sessions in random order, every ${expiredEvery}th request with an expired session\n\n`
  const cells = [['platform-auth-server', ...resident.map(value => value.toFixed(1))]]
  return `${title}${table(['', 'start', '1/4', '2/4', '3/4', 'end'], cells)}
Responses: ${answers.join(', ')}. There were ${refreshes} refreshes with ${calls} provider calls.
In the second half of the run, memory ${verdict}: ${change}.
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
  const title = '\n## streams: resident MiB before the proxy forwards a body, and the maximum while it does so\n\n'
  return title + table(['', 'before', 'maximum', 'seconds', 'CPU s'], cells)
}

function milliseconds(value) {
  return value === undefined ? '' : Math.round(value)
}
