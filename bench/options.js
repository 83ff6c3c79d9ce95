/** Parses the command line. */
import { parseArgs } from 'node:util'
import { REUSES } from './lost/logins.js'
import { PAGES } from './lost/user.js'
import { scenarios } from './scenarios.js'

const SCENARIOS = Object.keys(scenarios)
const DEFAULT = [...SCENARIOS, 'download', 'event-loop', 'refresh', 'startup', 'memory']
const MEASUREMENTS = [...DEFAULT, 'lost']
const PROFILED = [...SCENARIOS, 'refresh']
/** A record takes a few minutes, so that it can be made whenever the machine is idle. */
const DEFAULT_SECONDS = 2

export const USAGE = `npm run bench -- [options]
  --only NAMES      measurements to run, separated by commas (all except lost): ${MEASUREMENTS.join(',')}
  --rounds N        rounds of every candidate (5)
  --seconds N       length of each round in seconds (${DEFAULT_SECONDS})
  --connections N   connections of the load generator (32)
  --requests N      requests of the measurement memory (100000)
  --peers           also measures other servers, which are first installed; see bench/README.md
  --record          writes the ratios to bench/results/ratios.json
  --compare         compares the ratios with the recorded ones; the exit code is 1 if one of them is more than 7 % worse
  --profile NAME    prints where a request spends its CPU time, and measures nothing else: ${PROFILED.join(',')}

Only for the measurement lost:
  --seed N          seed of the random numbers (1)
  --users N         users who load pages (60)
  --reuse KIND      what the provider does at a second use of a refresh token (${REUSES[0]}): ${REUSES.join(',')}
  --pages KIND      the requests of a page (${PAGES[0]}): ${PAGES.join(',')}
  --programs NAMES  programs to compare, separated by commas (all)
  --cases NAMES     cases to play, separated by commas (all)
  --save            saves the results in bench/results/, of which scripts/comparison.js makes a table and a picture`

/**
 * Throws an error with a message for the user if an option is invalid.
 * @typedef {ReturnType<typeof parseOptions>} Options
 */
export function parseOptions() {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', default: false },
      only: { type: 'string', default: DEFAULT.join(',') },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: String(DEFAULT_SECONDS) },
      connections: { type: 'string', default: '32' },
      requests: { type: 'string', default: '100000' },
      peers: { type: 'boolean', default: false },
      record: { type: 'boolean', default: false },
      compare: { type: 'boolean', default: false },
      profile: { type: 'string' },
      seed: { type: 'string', default: '1' },
      users: { type: 'string', default: '60' },
      reuse: { type: 'string', default: REUSES[0] },
      pages: { type: 'string', default: PAGES[0] },
      programs: { type: 'string' },
      cases: { type: 'string' },
      save: { type: 'boolean', default: false }
    }
  })
  const only = values.only.split(',')
  for (const name of only) oneOf('only', name, MEASUREMENTS)
  if (values.profile !== undefined) oneOf('profile', values.profile, PROFILED)
  if (values.record && only.length < DEFAULT.length) throw new Error('--record needs all measurements, so not --only.')
  oneOf('reuse', values.reuse, REUSES)
  oneOf('pages', values.pages, PAGES)
  const numbers = ['rounds', 'seconds', 'connections', 'requests', 'seed', 'users'].map(name => [
    name,
    positive(name, values[name])
  ])
  const lists = ['programs', 'cases'].map(name => [name, values[name]?.split(',')])
  return { ...values, only, ...Object.fromEntries([...numbers, ...lists]) }
}

function oneOf(name, text, all) {
  if (!all.includes(text)) throw new Error(`--${name} must be one of ${all.join(', ')}.`)
}

function positive(name, text) {
  if (!/^[1-9]\d*$/.test(text)) throw new Error(`--${name} must be a positive whole number.`)
  return Number(text)
}
