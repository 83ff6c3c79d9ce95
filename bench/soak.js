/** Measures resident memory while many sessions are used and refreshed, as in a process that runs for weeks. */
import { TOKEN_PATH } from './candidates/common.js'
import { HEADERS } from './get.js'
import { LOAD_CORE, SERVER_CORE, startProcess } from './processes.js'
import { createSession } from './sessions.js'
import { startUnits } from './units.js'

const SESSIONS = 10_000
const SESSION_BYTES = 2000
const EXPIRED_EVERY = 20
const CALLS_PER_REFRESH = 2
const QUARTERS = 4
const MEBIBYTE = 2 ** 20

/**
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 */
export async function measureSoak(around, { requests, connections }) {
  const { units, secret, stop } = await startUnits([{}], SERVER_CORE, around)
  const clients = startProcess('browsers.js', LOAD_CORE)
  try {
    const [{ process, url }] = units
    const residentMebibytes = async () => (await process.ask('usage')).residentBytes / MEBIBYTE
    await clients.ask('start', {
      origin: url,
      path: TOKEN_PATH,
      headers: HEADERS,
      secret,
      session: createSession(SESSION_BYTES),
      sessions: SESSIONS,
      connections: Math.min(connections, SESSIONS / 2)
    })

    const callsBefore = await around.provider.ask('issued')
    const resident = [await residentMebibytes()]
    const statuses = {}
    let refreshes = 0
    for (let quarter = 0; quarter < QUARTERS; quarter++) {
      const result = await clients.ask('run', {
        requests: Math.ceil(requests / QUARTERS),
        expiredEvery: EXPIRED_EVERY
      })
      for (const [status, count] of Object.entries(result.statuses)) statuses[status] = (statuses[status] ?? 0) + count
      refreshes += result.refreshes
      resident.push(await residentMebibytes())
    }
    const calls = (await around.provider.ask('issued')) - callsBefore
    const due = refreshes * CALLS_PER_REFRESH
    if (calls !== due || Object.keys(statuses).some(status => status !== '200')) {
      const counts = JSON.stringify(statuses)
      throw new Error(`soak: Responses by status: ${counts}. There were ${calls} provider calls instead of ${due}.`)
    }
    return {
      resident,
      statuses,
      refreshes,
      calls,
      sessions: SESSIONS,
      expiredEvery: EXPIRED_EVERY
    }
  } finally {
    await Promise.all([clients.stop(), stop()])
  }
}
