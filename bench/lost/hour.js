/**
 * How many of 10,000 users one fault would sign out if access tokens lived for an hour, computed from the measured shares. The
 * page explains the formulas.
 */
import { table } from '../report.js'
import { cases } from './cases.js'
import { programs } from './programs/index.js'
import { absentText, casesOf, NONE, resultsOf } from './tables.js'

const MANY = 10_000
const HOUR_SECONDS = 3600
/** A quiet page sends a request at this interval. */
export const QUIET_SECONDS = 60
const UNDISTURBED = 'two-processes'
/** Only the refreshes in progress at one moment can be lost. */
const MOMENTS = ['killed', 'restarted']
const STOPS = ['stopped', 'stopped-90s']
/** In these cases no token is refreshed, so they show who is signed out by the outage of Redis alone. */
const WITHOUT_REFRESHES = { 'redis-empty': 'redis-empty-long', 'redis-file': 'redis-file-long' }
const IDLE = 'redis-empty-idle'

/** @typedef {import('./measure.js').LostRun} LostRun */

/**
 * @param {LostRun[]} runs
 * @param {LostRun[]} [kills] further runs that played only the kill
 */
export function hourTable(runs, kills = []) {
  const all = [...runs, ...kills]
  const names = runs[0].programs.map(({ name }) => name)
  const rows = casesOf(runs).flatMap(which => {
    if (!which.fault || which.withoutRedis) return []
    if (!which.needsRedis) {
      const cells = names.map(name => shown(sharesOf(all, name, which)))
      return cells.every(cell => ['0', NONE].includes(cell)) ? [] : [[which.title, ...cells]]
    }
    if (!(which.name in WITHOUT_REFRESHES)) return []
    return ['busy', 'quiet'].map(page => [
      `${which.title}, ${page} page`,
      ...names.map(name => absentIn(all, name, which) ?? shown(redisShares(all, name, which, page)))
    ])
  })
  return table(['', ...runs[0].programs.map(({ title }) => title)], rows)
}

/** Returns the share of the users that a fault signs out, or the lowest and the highest share if it is not known exactly. */
function sharesOf(runs, name, { name: which, fault }) {
  const [lost, interval] = [lostShare(runs, name, which), refreshInterval(runs, name)]
  if (lost === undefined || interval === undefined) return []
  const seconds = fault.lastsMs / 1000
  const atOneMoment = (lost * interval) / HOUR_SECONDS
  if (MOMENTS.includes(which)) return [atOneMoment]
  if (STOPS.includes(which)) return [atOneMoment, (lost * Math.max(seconds, interval)) / HOUR_SECONDS]
  // A user of the comparison refreshes several times during the fault, and with tokens of an hour at most once.
  const refreshes = Math.max(1, seconds / interval)
  return [((1 - (1 - lost) ** (1 / refreshes)) * seconds) / HOUR_SECONDS]
}

/** Returns what the cell says if the program has no Redis. */
function absentIn(runs, name, { name: which }) {
  return resultsOf(runs, name)
    .map(({ outcomes }) => outcomes[which] && absentText(outcomes[which]))
    .find(text => text !== undefined)
}

/** A Redis that fails can sign out users whose session is not refreshed. For them, the number of their requests matters. */
function redisShares(runs, name, { name: which, fault, keepsFile }, page) {
  const [lost, interval] = [lostShare(runs, name, which), refreshInterval(runs, name)]
  const withoutRefresh = lostShare(runs, name, WITHOUT_REFRESHES[which])
  if (lost === undefined || interval === undefined || withoutRefresh === undefined) return []
  const byRefresh = (Math.max(0, lost - withoutRefresh) * interval) / HOUR_SECONDS
  const byOutage = page === 'busy' ? withoutRefresh : quietShare()
  return [Math.min(1, byOutage + byRefresh)]

  function quietShare() {
    // If Redis keeps its data, only a user who sends a request during the outage can lose the session.
    if (keepsFile) return Math.min(withoutRefresh, fault.lastsMs / 1000 / QUIET_SECONDS)
    return lostShare(runs, name, IDLE) ?? withoutRefresh
  }
}

/** The mean share of the users who were signed out. */
function lostShare(runs, name, which) {
  return mean(
    resultsOf(runs, name).flatMap(({ outcomes: { [which]: outcome }, users }) =>
      outcome?.signedOut === undefined ? [] : [outcome.signedOut / users]
    )
  )
}

/** The mean time between two refreshes of a user without a fault, in seconds. */
export function refreshInterval(runs, name) {
  const { tokenRequests = 1 } = programs.find(program => program.name === name) ?? {}
  const seconds = cases.find(({ name }) => name === UNDISTURBED).durationMs / 1000
  return mean(
    resultsOf(runs, name).flatMap(({ outcomes: { [UNDISTURBED]: outcome }, users }) =>
      outcome?.refreshes ? [(seconds * users * tokenRequests) / outcome.refreshes] : []
    )
  )
}

function mean(values) {
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length
}

/** @param {number[]} shares */
function shown(shares) {
  const numbers = new Set(shares.map(share => rounded(MANY * share)))
  return [...numbers].join(' to ') || NONE
}

function rounded(value) {
  if (value === 0) return '0'
  return value < 10 ? value.toFixed(1) : String(Math.round(value))
}
