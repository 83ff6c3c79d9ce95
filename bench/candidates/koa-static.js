/** koa-static without other middleware. */
import Koa from 'koa'
import koaStatic from 'koa-static'
import { listen } from './common.js'

/** @type {import('./common.js').Start} */
export async function start({ wwwroot }) {
  const app = new Koa()
  // Without this, each connection that the load generator closes at the end would print a stack trace.
  app.silent = true
  app.use(koaStatic(wwwroot))
  return { port: await listen(app.callback()), cookie: () => '' }
}
