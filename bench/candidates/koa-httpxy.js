/** Bare Koa with httpxy. It forwards all headers, including cookies. */
import http from 'node:http'
import { createProxyServer } from 'httpxy'
import { startKoaProxy } from './koa-proxy.js'

/** @param {import('../settings.js').Bench} bench */
export async function start({ providerUrl, session }) {
  const agent = new http.Agent({ keepAlive: true })
  const proxy = createProxyServer({
    target: providerUrl,
    agent,
    headers: { authorization: `Bearer ${session.internal_token}` }
  })
  return startKoaProxy((request, response) => proxy.web(request, response))
}
