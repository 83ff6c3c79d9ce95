/** koa-static alone. */
import Koa from 'koa'
import koaStatic from 'koa-static'
import { listen } from './common.js'

/**
 * @param {import('../settings.js').Bench} bench
 * @returns {Promise<import('./common.js').Candidate>}
 */
export async function start({ wwwroot }) {
  const app = new Koa()
  // Connections that the load drops at the end would each print a stack.
  app.silent = true
  app.use(koaStatic(wwwroot))
  return { port: await listen(app.callback()), cookie: () => '' }
}
