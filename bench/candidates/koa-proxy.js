/** Shared code of the candidates that use a proxy library in Koa. */
import Koa from 'koa'
import { listen } from './common.js'

/** @param {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => unknown} forward */
export async function startKoaProxy(forward) {
  const app = new Koa()
  app.use(async ctx => {
    ctx.respond = false
    await forward(ctx.req, ctx.res)
  })
  return { port: await listen(app.callback()), cookie: () => '' }
}
