/** The forward-auth port of this server, which gateways ask whether they may forward a request. */
import { serve } from '../../dist/server.js'
import { createSessions } from '../sessions.js'
import { serverConfig } from '../settings.js'

/**
 * @param {import('../settings.js').Bench} bench
 * @returns {Promise<import('./common.js').Candidate>}
 */
export async function start(bench) {
  const { forwardAuthPort } = await serve({ ...serverConfig(bench), forwardAuth: { host: '127.0.0.1', port: 0 } })
  return { port: forwardAuthPort, cookie: createSessions(bench.secret).cookie }
}
