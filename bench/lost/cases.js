/** The cases of the comparison: how many processes run, and which fault happens when. */

const SECOND = 1000
/** A supervisor such as systemd starts a process again after about this time. */
const RESTART_MS = 1000
/** Tokens with this lifetime are not refreshed during a case, so a user who is signed out has lost the session by the outage alone. */
const LONG_SECONDS = 600

/**
 * @typedef {{ begin: (stage: Stage) => unknown, lastsMs: number, end: (stage: Stage) => unknown }} Fault
 * @typedef {{ fleet: import('./fleet.js').Fleet, weather: { cutShare: number }, slowProvider: (ms: number) => Promise<void>,
 *   failProvider: (status?: number) => Promise<void> }} Stage what a fault can do
 *
 * @typedef {object} Case
 * @property {string} name
 * @property {string} title
 * @property {number} seconds
 * @property {1 | 2} [processes] 2 if it is missing
 * @property {boolean} [needsRedis]
 * @property {boolean} [withoutRedis] no program has a Redis, also not with two processes
 * @property {boolean} [keepsFile] Redis writes every change to its append-only file
 * @property {number} [lifetimeSeconds] the lifetime of access tokens, if it is not that of the program
 * @property {number} [faultAfterMs] the earliest begin of the fault
 * @property {number} [idleMs] the time after the login in which users load no pages
 * @property {Fault} [fault] begins while users load pages
 */

/** A provider that fails uses no refresh token. Every session is refreshed within about 4 s, so everyone meets the fault. */
const failing = lasting(
  5,
  ({ failProvider }) => failProvider(503),
  ({ failProvider }) => failProvider()
)
const slow = seconds =>
  lasting(
    5,
    stage => stage.slowProvider(seconds * SECOND),
    stage => stage.slowProvider(0)
  )
const stopping = (seconds, signal) =>
  lasting(
    seconds,
    ({ fleet }) => signal(fleet, 'SIGSTOP'),
    ({ fleet }) => signal(fleet, 'SIGCONT')
  )
const stopped = seconds => stopping(seconds, (fleet, name) => fleet.signal(0, name))
const stoppedRedis = stopping(6, (fleet, name) => fleet.signalRedis(name))
const killed = { begin: ({ fleet }) => fleet.kill(0), lastsMs: RESTART_MS, end: ({ fleet }) => fleet.start(0) }
const killedRedis = {
  begin: ({ fleet }) => fleet.killRedis(),
  lastsMs: RESTART_MS,
  end: ({ fleet }) => fleet.startRedis()
}
const restarted = { begin: restartAll, lastsMs: 0, end: () => undefined }
const cut = lasting(
  8,
  ({ weather }) => Object.assign(weather, { cutShare: 0.5 }),
  ({ weather }) => Object.assign(weather, { cutShare: 0 })
)

const redis = { needsRedis: true, fault: killedRedis, seconds: 12 }
/** Processes remember the sessions of the last minute. After it, Redis has the only copy of a stored session. */
const idle = { lifetimeSeconds: LONG_SECONDS, faultAfterMs: 66 * SECOND, idleMs: 75 * SECOND, seconds: 85 }

/** @type {Case[]} */
export const cases = [
  { name: 'two-processes', title: 'two processes', seconds: 24 },
  { name: 'provider-3s', title: 'provider slow, 3 s', seconds: 14, fault: slow(3) },
  { name: 'provider-12s', title: 'provider slow, 12 s', seconds: 22, fault: slow(12) },
  // Longer than the time limit of every program for a token request. That of this server is 60 s.
  { name: 'provider-70s', title: 'provider slow, 70 s', seconds: 90, fault: slow(70) },
  { name: 'provider-503', title: 'provider fails, 503', seconds: 14, fault: failing },
  { name: 'restarted', title: 'both processes restarted', seconds: 20, fault: restarted },
  { name: 'killed', title: 'process killed', seconds: 12, fault: killed },
  { name: 'stopped', title: 'process stopped, 6 s', seconds: 15, fault: stopped(6) },
  { name: 'stopped-90s', title: 'process stopped, 90 s', seconds: 105, fault: stopped(90) },
  { name: 'redis-empty', title: 'Redis restarted, empty', ...redis },
  { name: 'redis-file', title: 'Redis restarted, append-only file', ...redis, keepsFile: true },
  { name: 'redis-stopped', title: 'Redis stopped, 6 s', needsRedis: true, seconds: 15, fault: stoppedRedis },
  { name: 'redis-empty-idle', title: 'Redis restarted, empty, users idle for a minute', ...redis, ...idle },
  { name: 'two-alone', title: 'two processes without Redis', withoutRedis: true, seconds: 20 },
  {
    name: 'killed-alone',
    title: 'one process without Redis, killed',
    processes: 1,
    withoutRedis: true,
    seconds: 12,
    fault: killed
  },
  { name: 'cut', title: 'connections cut', seconds: 17, fault: cut }
]

/** @returns {Fault} */
function lasting(seconds, begin, end) {
  return { begin, lastsMs: seconds * SECOND, end }
}

/** An update replaces one process after the other. */
async function restartAll({ fleet }) {
  for (const index of fleet.ports().keys()) await fleet.restart(index)
}

/**
 * A program without a Redis plays no case about Redis, and its two processes are without Redis in every case.
 * @param {import('./programs/common.js').Compared} program
 * @param {Case} which
 */
export function takesPart({ redis }, { needsRedis, withoutRedis, processes = 2 }) {
  if (needsRedis) return redis !== 'never'
  return !withoutRedis || redis === 'two processes' || (redis === 'never' && processes === 1)
}
