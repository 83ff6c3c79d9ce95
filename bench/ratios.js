/**
 * The ratios of the server to its references, recorded in `results/ratios.json`. A ratio depends on the machine far less than the
 * values that it compares. Each one is a cost of the server divided by the cost of the reference, so lower is better.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { table } from './report.js'

/** `--compare` refuses to run above this load average, because other work makes the ratios worse. */
const MOST_LOAD = 0.3
/** Smaller differences are normal variations between two runs. */
const WORSE_BY = 1.07
const FILE = new URL('results/ratios.json', import.meta.url)

/**
 * What each ratio compares, and the goal of the design.
 * @type {Record<string, { of: string, atMost?: number }>}
 */
const RATIOS = {
  token: { of: 'CPU time of a request, to bare Koa', atMost: 1.43 },
  'token-many': { of: 'CPU time of a request, to bare Koa' },
  'forward-auth': { of: 'CPU time of a request, to bare Koa' },
  static: { of: 'CPU time of a request, to koa-static', atMost: 1 },
  proxy: { of: 'CPU time of a request, to undici', atMost: 1.3 },
  download: { of: 'time of a download of 100 MiB, to nginx', atMost: 1.25 },
  'event-loop': { of: 'p99 of the delay of the event loop, to bare Koa', atMost: 3 },
  redis: { of: 'CPU time of a request, session in Redis to session in the cookie', atMost: 1.4 },
  refresh: { of: 'CPU time of a dual refresh, to two got calls' },
  'refresh, with Redis': { of: 'CPU time of a dual refresh, to two got calls and four scripts', atMost: 1.8 },
  startup: { of: 'time until listening, to bare Koa', atMost: 1.4 },
  'memory, one session': { of: 'resident memory, to bare Koa', atMost: 1.35 },
  'memory, 10,000 sessions': { of: 'resident memory, to bare Koa' }
}

/**
 * @typedef {Record<string, number>} Ratios
 *
 * @typedef {{ text: string, ratios?: Ratios }} Measured the table of a measurement, and its ratios
 * @typedef {(around: import('./lineup.js').Around, options: import('./options.js').Options) => Promise<Measured>} Measurement
 */

/**
 * @param {number} load the load average of the last minute
 * @returns the reason why this is no time for a comparison, or undefined
 */
export function refusal(load) {
  if (load <= MOST_LOAD) return undefined
  return `The load average of the last minute is ${load.toFixed(2)}. Above ${MOST_LOAD}, other work would distort the comparison. Wait until this machine is idle.`
}

/**
 * @param {Ratios} recorded
 * @param {Ratios} measured
 * @returns a row for each measured ratio; `change` is the measured ratio divided by the recorded one
 */
export function compareRatios(recorded, measured) {
  return Object.entries(measured).map(([name, now]) => {
    const change = name in recorded ? now / recorded[name] : undefined
    return { name, before: recorded[name], now, change, isWorse: change !== undefined && change > WORSE_BY }
  })
}

/**
 * @param {Ratios} measured
 * @param {Ratios} [recorded]
 * @returns the table of the ratios, with their goals and the recorded ratios
 */
export function ratiosTable(measured, recorded = {}) {
  const rows = compareRatios(recorded, measured).map(({ name, before, now, change, isWorse }) => [
    name,
    RATIOS[name].of,
    before?.toFixed(2) ?? '',
    now.toFixed(2),
    change === undefined
      ? ''
      : `${change < 1 ? '' : '+'}${((change - 1) * 100).toFixed(1)} %${isWorse ? ' WORSE' : ''}`,
    RATIOS[name].atMost?.toFixed(2) ?? ''
  ])
  return `\n## Ratios: lower is better\n\n${table(['', 'of', 'recorded', 'measured', 'change', 'goal, at most'], rows)}`
}

export async function readRecord() {
  try {
    return JSON.parse(await readFile(FILE, 'utf8'))
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
    throw new Error('There is nothing to compare with. Run `npm run bench -- --record` on an idle machine first.')
  }
}

/** @param {{ date: string, machine: object, ratios: Ratios }} record */
export async function writeRecord(record) {
  await mkdir(new URL('.', FILE), { recursive: true })
  const ratios = Object.fromEntries(
    Object.entries(record.ratios).map(([name, ratio]) => [name, Number(ratio.toFixed(3))])
  )
  await writeFile(FILE, `${JSON.stringify({ ...record, ratios }, null, 2)}\n`)
}
