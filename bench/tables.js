/** How each measurement is shown. */
import { table } from './report.js'

/**
 * @param {string} name
 * @param {import('./scenarios.js').Scenario} scenario
 * @param {Awaited<ReturnType<typeof import('./throughput.js').measureThroughput>>} result
 */
export function throughputTable(name, { path, status, title }, { rows, cookieBytes }) {
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
  return `\n## ${name}: \`GET ${path}\`, ${status}; ${title}${cookie}\n\n${table(head, cells)}`
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

function milliseconds(value) {
  return value === undefined ? '' : Math.round(value)
}
