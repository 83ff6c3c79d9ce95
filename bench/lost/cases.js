/** The cases of the comparison: how many processes run, and which fault happens when. */

const SECOND = 1000
const MINUTE = 60 * SECOND
/** A supervisor such as systemd starts a process again after about this time. */
const RESTART_MS = 1000

/**
 * What a fault can do.
 * @typedef {object} Stage
 * @property {(ms: number) => Promise<void>} slowProvider
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
 * @property {number} durationMs
 * @property {Fault} [fault] begins while people load pages
 */

/** @type {Case[]} */
export const cases = [
  { name: 'one-process', title: 'one process', processes: 1, durationMs: 46 * SECOND },
  { name: 'two-processes', title: 'two processes', processes: 2, durationMs: 46 * SECOND },
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
    name: 'killed',
    title: 'process killed',
    processes: 2,
    durationMs: 12 * SECOND,
    fault: { begin: ({ fleet }) => fleet.kill(0), lastsMs: RESTART_MS, end: ({ fleet }) => fleet.start(0) }
  },
  {
    name: 'stopped',
    title: 'process stopped, 6 s',
    processes: 2,
    durationMs: 15 * SECOND,
    fault: {
      begin: ({ fleet }) => fleet.signal(0, 'SIGSTOP'),
      lastsMs: 6 * SECOND,
      end: ({ fleet }) => fleet.signal(0, 'SIGCONT')
    }
  },
  {
    name: 'redis-empty',
    title: 'Redis restarted empty',
    processes: 2,
    needsRedis: true,
    durationMs: 12 * SECOND,
    fault: { begin: ({ fleet }) => fleet.killRedis(), lastsMs: RESTART_MS, end: ({ fleet }) => fleet.startRedis() }
  },
  {
    name: 'cut',
    title: 'connections cut',
    processes: 2,
    durationMs: 14 * SECOND,
    fault: {
      begin: ({ weather }) => cutPages(weather, 0.5),
      lastsMs: 8 * SECOND,
      end: ({ weather }) => cutPages(weather, 0)
    }
  }
]

/** The longest that a case may take, with its start and the time until everyone's outcome is known. */
export const LONGEST_CASE_MS = 4 * MINUTE

// Everyone's session is refreshed within about 4 s, so everyone meets the slow provider.
/** @returns {Fault} */
function slowProvider(ms) {
  return { begin: stage => stage.slowProvider(ms), lastsMs: 5 * SECOND, end: stage => stage.slowProvider(0) }
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
  if (program.onlyCase && program.onlyCase !== which.name) return { leftOut: program.whyOnly }
  if (which.processes > program.maxProcesses) return { impossible: program.whyNotTwo }
  if (which.needsRedis && program.redis === 'never') return { impossible: 'it uses no Redis' }
  return undefined
}
