/** Parses the command line. */
import { parseArgs } from 'node:util'
import { REUSES } from './lost/logins.js'
import { PAGES } from './lost/user.js'
import { PROGRAMS, SERVER, scenarios } from './scenarios.js'

const SCENARIOS = Object.keys(scenarios)
const DEFAULT = [
  ...SCENARIOS,
  'startup',
  'memory',
  'refresh-cost',
  'scale',
  'session-store',
  'soak',
  'streams',
  'replicas',
  'per-core'
]
const MEASUREMENTS = [...DEFAULT, 'lost']

export const USAGE = `npm run bench -- [options]
  --only NAMES      measurements to run, separated by commas (all except lost): ${MEASUREMENTS.join(',')}
  --rounds N        rounds of every candidate (5)
  --seconds N       length of each round in seconds (5)
  --connections N   connections of the load generator (32)
  --requests N      requests of the measurements memory and soak (100000)
  --peers           also measures other servers, which are first installed; see bench/README.md
  --record          writes the figures of replicas and per-core to bench/capacity/figures.json and docs/scale.md
  --profile NAME    writes a CPU profile of one scenario, and measures nothing else
  --candidate NAME  the server that --profile profiles (this one)

Only for the measurement lost:
  --seed N          seed of the random numbers (1)
  --users N         users who load pages (200)
  --reuse KIND      what the provider does at a second use of a refresh token (${REUSES[0]}): ${REUSES.join(',')}
  --pages KIND      the requests of a page (${PAGES[0]}): ${PAGES.join(',')}
  --programs NAMES  programs to compare, separated by commas (all)
  --cases NAMES     cases to play, separated by commas (all)
  --save            saves the results in bench/results/, from which bench/lost/page.js writes docs/comparison.md`

/**
 * @typedef {object} Options
 * @property {boolean} help
 * @property {string[]} only names of measurements
 * @property {number} rounds
 * @property {number} seconds
 * @property {number} connections
 * @property {number} requests
 * @property {boolean} peers
 * @property {boolean} record
 * @property {string} [profile] name of a scenario
 * @property {string} [candidate] the server to profile
 * @property {number} seed
 * @property {number} users
 * @property {import('./lost/logins.js').Reuse} reuse
 * @property {import('./lost/user.js').PageKind} pages
 * @property {string[]} [programs]
 * @property {string[]} [cases]
 * @property {boolean} save
 */

/**
 * Throws an error with a message for the user if an option is invalid.
 * @returns {Options}
 */
export function parseOptions() {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', default: false },
      only: { type: 'string', default: DEFAULT.join(',') },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '5' },
      connections: { type: 'string', default: '32' },
      requests: { type: 'string', default: '100000' },
      peers: { type: 'boolean', default: false },
      record: { type: 'boolean', default: false },
      profile: { type: 'string' },
      candidate: { type: 'string' },
      seed: { type: 'string', default: '1' },
      users: { type: 'string', default: '200' },
      reuse: { type: 'string', default: REUSES[0] },
      pages: { type: 'string', default: PAGES[0] },
      programs: { type: 'string' },
      cases: { type: 'string' },
      save: { type: 'boolean', default: false }
    }
  })
  const only = values.only.split(',')
  const unknown =
    only.find(name => !MEASUREMENTS.includes(name)) ?? [values.profile].find(name => name && !SCENARIOS.includes(name))
  if (unknown !== undefined) throw new Error(`There is no measurement "${unknown}". Run with --help to list them.`)
  oneOf('reuse', values.reuse, REUSES)
  oneOf('pages', values.pages, PAGES)
  const numbers = ['rounds', 'seconds', 'connections', 'requests', 'seed', 'users'].map(name => [
    name,
    positive(name, values[name])
  ])
  const thisServer = scenarios[values.profile]?.candidates.find(name => name.startsWith(SERVER))
  const candidate = values.candidate ?? thisServer
  if (candidate in PROGRAMS) throw new Error(`${candidate} does not run on Node, so it has no CPU profile.`)
  return {
    ...values,
    only,
    candidate,
    ...Object.fromEntries(numbers),
    programs: values.programs?.split(','),
    cases: values.cases?.split(',')
  }
}

function oneOf(name, text, all) {
  if (!all.includes(text)) throw new Error(`--${name} must be one of ${all.join(', ')}.`)
}

function positive(name, text) {
  if (!/^[1-9]\d*$/.test(text)) throw new Error(`--${name} must be a positive whole number.`)
  return Number(text)
}
