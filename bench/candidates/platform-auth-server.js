/** This server. */
import { serve } from '../../dist/server.js'
import { createSessions } from '../sessions.js'
import { serverConfig } from '../settings.js'

/**
 * @param {import('../settings.js').Bench} bench
 * @returns {Promise<import('./common.js').Candidate>}
 */
export async function start(bench) {
  const { port } = await serve(serverConfig(bench))
  return { port, cookie: createSessions(bench.secret).cookie }
}
