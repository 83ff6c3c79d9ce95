/** The cases of the comparison: how many processes run, and which fault happens when. */

const SECOND = 1000
const MINUTE = 60 * SECOND
/** A supervisor such as systemd starts a process again after about this time. */
const RESTART_MS = 1000
/** Tokens with this lifetime are not refreshed during a case. */
const LONG_SECONDS = 600

/**
 * What a fault can do.
 * @typedef {object} Stage
 * @property {(ms: number) => Promise<void>} slowProvider
 * @property {(status: number | undefined) => Promise<void>} failProvider
 * @property {import('./fleet.js').Fleet} fleet
 * @property {{ cutShare: number }} weather
 *
 * @typedef {object} Fault
 * @property {(stage: Stage) => unknown} begin
 * @property {number} lastsMs
 * @property {(stage: Stage) => unknown} end
 *
 * @typedef {object} Case
 * @property {string} name
 * @property {string} title
 * @property {1 | 2} processes
 * @property {boolean} [needsRedis]
 * @property {boolean} [withoutRedis] no program has a Redis, also not with two processes
 * @property {boolean} [keepsFile] Redis writes every change to its append-only file
 * @property {number} [lifetimeSeconds] the lifetime of access tokens, if it is not that of the program
 * @property {number} [faultAfterMs] the earliest begin of the fault
 * @property {number} [idleMs] the time after the login in which users load no pages
 * @property {number} durationMs
 * @property {Fault} [fault] begins while users load pages
 */

/** @type {Case[]} */
export const cases = [
  { name: 'one-process', title: 'one process', processes: 1, durationMs: 24 * SECOND },
  { name: 'two-processes', title: 'two processes', processes: 2, durationMs: 24 * SECOND },
  {
    name: 'provider-3s',
    title: 'provider slow, 3 s',
    processes: 2,
    durationMs: 14 * SECOND,
    fault: slowProvider(3 * SECOND)
  },
  {
    name: 'provider-12s',
    title: 'provider slow, 12 s',
    processes: 2,
    durationMs: 22 * SECOND,
    fault: slowProvider(12 * SECOND)
  },
  {
    // Longer than the time limit of every program for a token request. That of this server is 60 s.
    name: 'provider-70s',
    title: 'provider slow, 70 s',
    processes: 2,
    durationMs: 90 * SECOND,
    fault: slowProvider(70 * SECOND)
  },
  {
    name: 'provider-503',
    title: 'provider fails, 503',
    processes: 2,
    durationMs: 14 * SECOND,
    fault: failingProvider(503)
  },
  {
    name: 'provider-429',
    title: 'provider fails, 429',
    processes: 2,
    durationMs: 14 * SECOND,
    fault: failingProvider(429)
  },
  {
    name: 'restarted',
    title: 'both processes restarted',
    processes: 2,
    durationMs: 20 * SECOND,
    fault: { begin: restartAll, lastsMs: 0, end: () => undefined }
  },
  {
    name: 'killed',
    title: 'process killed',
    processes: 2,
    durationMs: 12 * SECOND,
    fault: killedProcess()
  },
  { name: 'stopped', title: 'process stopped, 6 s', processes: 2, durationMs: 15 * SECOND, fault: stopped(6 * SECOND) },
  {
    name: 'stopped-90s',
    title: 'process stopped, 90 s',
    processes: 2,
    durationMs: 105 * SECOND,
    fault: stopped(90 * SECOND)
  },
  {
    name: 'redis-empty',
    title: 'Redis restarted, empty',
    processes: 2,
    needsRedis: true,
    durationMs: 12 * SECOND,
    fault: restartedRedis()
  },
  {
    name: 'redis-file',
    title: 'Redis restarted, append-only file',
    processes: 2,
    needsRedis: true,
    keepsFile: true,
    durationMs: 12 * SECOND,
    fault: restartedRedis()
  },
  {
    name: 'redis-stopped',
    title: 'Redis stopped, 6 s',
    processes: 2,
    needsRedis: true,
    durationMs: 15 * SECOND,
    fault: {
      begin: ({ fleet }) => fleet.signalRedis('SIGSTOP'),
      lastsMs: 6 * SECOND,
      end: ({ fleet }) => fleet.signalRedis('SIGCONT')
    }
  },
  {
    // No token is refreshed, so a user who is signed out has lost the session by the outage alone.
    name: 'redis-empty-long',
    title: 'Redis restarted, empty, tokens of 10 minutes',
    processes: 2,
    needsRedis: true,
    lifetimeSeconds: LONG_SECONDS,
    durationMs: 12 * SECOND,
    fault: restartedRedis()
  },
  {
    name: 'redis-file-long',
    title: 'Redis restarted, append-only file, tokens of 10 minutes',
    processes: 2,
    needsRedis: true,
    keepsFile: true,
    lifetimeSeconds: LONG_SECONDS,
    durationMs: 12 * SECOND,
    fault: restartedRedis()
  },
  {
    // Processes remember the sessions of the last minute. After it, Redis has the only copy of a stored session.
    name: 'redis-empty-idle',
    title: 'Redis restarted, empty, users idle for a minute',
    processes: 2,
    needsRedis: true,
    lifetimeSeconds: LONG_SECONDS,
    faultAfterMs: 66 * SECOND,
    idleMs: 75 * SECOND,
    durationMs: 85 * SECOND,
    fault: restartedRedis()
  },
  {
    name: 'two-alone',
    title: 'two processes without Redis',
    processes: 2,
    withoutRedis: true,
    durationMs: 20 * SECOND
  },
  {
    name: 'killed-alone',
    title: 'one process without Redis, killed',
    processes: 1,
    withoutRedis: true,
    durationMs: 12 * SECOND,
    fault: killedProcess()
  },
  {
    name: 'cut',
    title: 'connections cut',
    processes: 2,
    durationMs: 17 * SECOND,
    fault: {
      begin: ({ weather }) => cutPages(weather, 0.5),
      lastsMs: 8 * SECOND,
      end: ({ weather }) => cutPages(weather, 0)
    }
  }
]

/** The longest that a case may take, with its start and the time until everyone's outcome is known. */
export const LONGEST_CASE_MS = 5 * MINUTE

// Everyone's session is refreshed within about 4 s, so everyone meets the slow provider.
/** @returns {Fault} */
function slowProvider(ms) {
  return { begin: stage => stage.slowProvider(ms), lastsMs: 5 * SECOND, end: stage => stage.slowProvider(0) }
}

/**
 * A provider that fails uses no refresh token.
 * @returns {Fault}
 */
function failingProvider(status) {
  return {
    begin: stage => stage.failProvider(status),
    lastsMs: 5 * SECOND,
    end: stage => stage.failProvider(undefined)
  }
}

/** An update replaces one process after the other. */
async function restartAll({ fleet }) {
  for (const index of fleet.ports().keys()) await fleet.restart(index)
}

/** @returns {Fault} */
function killedProcess() {
  return { begin: ({ fleet }) => fleet.kill(0), lastsMs: RESTART_MS, end: ({ fleet }) => fleet.start(0) }
}

/** @returns {Fault} */
function stopped(ms) {
  return {
    begin: ({ fleet }) => fleet.signal(0, 'SIGSTOP'),
    lastsMs: ms,
    end: ({ fleet }) => fleet.signal(0, 'SIGCONT')
  }
}

/** @returns {Fault} */
function restartedRedis() {
  return { begin: ({ fleet }) => fleet.killRedis(), lastsMs: RESTART_MS, end: ({ fleet }) => fleet.startRedis() }
}

function cutPages(weather, share) {
  weather.cutShare = share
}

/**
 * Returns why a program does not take part in a case: because it cannot, or because the comparison leaves it out.
 * @param {import('./programs/common.js').Compared} program
 * @param {Case} which
 * @returns {{ impossible: string } | { leftOut: string } | undefined}
 */
export function absence(program, which) {
  if (which.processes > program.maxProcesses) return { impossible: program.whyNotTwo }
  if (which.needsRedis && program.redis === 'never') return { leftOut: 'it is compared without Redis' }
  if (which.withoutRedis && program.redis === 'always') return { impossible: 'its sessions are in Redis' }
  if (which.withoutRedis && which.processes === 2 && program.redis === 'never') {
    return { leftOut: 'it uses no Redis with two processes either' }
  }
  return undefined
}
