/** The goals of the design that the benchmark measures. */
import { table } from './report.js'
import { SERVER } from './scenarios.js'

/**
 * @typedef {object} Goal
 * @property {string} measurement the measurement whose result has the value
 * @property {string} clause the goal in the words of the design, section 10
 * @property {number} [atLeast]
 * @property {number} [atMost]
 * @property {(result: object) => number | undefined} value returns undefined if the measurement was skipped
 */

/** @type {readonly Goal[]} */
const GOALS = [
  {
    measurement: 'token',
    clause: '`/api/auth/token`, active dual session of 2 kB: requests a second, compared with bare Koa',
    atLeast: 0.6,
    value: ({ rows }) => rowOf(rows, SERVER).rateRatio
  },
  {
    measurement: 'static',
    clause: 'static file, 10 kB: requests a second, compared with bare koa-static',
    atLeast: 1,
    value: ({ rows }) => rowOf(rows, SERVER).rateRatio
  },
  {
    measurement: 'startup',
    clause: 'start to listening: time, compared with bare Koa',
    atMost: 2.2,
    value: ([koa, server]) => server.listening / koa.listening
  },
  {
    measurement: 'proxy',
    clause: 'proxied GET of 2 kB: CPU time, compared with a bare undici pass-through',
    atMost: 1.5,
    value: ({ rows }) => 1 / rowOf(rows, SERVER).cpuRatio
  },
  {
    measurement: 'memory',
    clause: 'memory after 100,000 requests, one session: resident set, compared with bare Koa',
    atMost: 1.4,
    value: rows => memoryOf(rows, 'token').ratio
  },
  {
    measurement: 'memory',
    clause: 'memory after 100,000 requests, 10,000 sessions: resident set, compared with bare Koa',
    atMost: 1.4,
    value: rows => memoryOf(rows, 'token-many').ratio
  },
  {
    measurement: 'memory',
    clause: 'memory is flat, 10,000 sessions: resident set at the end, compared with the middle',
    // Smaller differences between two readings are normal variations of the heap.
    atMost: 1.05,
    value: rows => memoryOf(rows, 'token-many').atEnd / memoryOf(rows, 'token-many').halfway
  },
  {
    measurement: 'refresh-cost',
    clause: 'CPU of a dual refresh: compared with two bare got calls and four Redis scripts in one run',
    atMost: 2,
    value: result => result && 1 / rowOf(result.withRedis, 'server').cpuRatio
  }
]

/**
 * Returns the table of all goals. A goal whose measurement did not run is not measured.
 * @param {ReadonlyMap<string, unknown>} results the result of each measurement of this run
 */
export function goalsTable(results) {
  const rows = GOALS.map(({ measurement, clause, atLeast, atMost, value }) => {
    const goal = atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`
    const measured = results.has(measurement) ? value(results.get(measurement)) : undefined
    if (measured === undefined) return [clause, measurement, goal, '', 'not measured']
    const isMet = measured >= (atLeast ?? Number.NEGATIVE_INFINITY) && measured <= (atMost ?? Number.POSITIVE_INFINITY)
    return [clause, measurement, goal, measured.toFixed(2), isMet ? 'pass' : 'fail']
  })
  return `\n## Goals\n\n${table(['', 'measurement', 'goal', 'measured', 'result'], rows)}`
}

function rowOf(rows, name) {
  return rows.find(row => row.name === name)
}

function memoryOf(rows, scenario) {
  return rows.find(row => row.scenario === scenario && row.name === SERVER)
}
