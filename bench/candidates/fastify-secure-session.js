/** Fastify with @fastify/secure-session. */
import { createHash } from 'node:crypto'
import secureSession from '@fastify/secure-session'
import fastify from 'fastify'
import { TOKEN_PATH } from '../settings.js'
import { cookieSetBy, tokenObject } from './common.js'

/** @type {import('./common.js').Start} */
export async function start({ secret }) {
  let given
  const app = fastify({ keepAliveTimeout: 75_000 })
  const key = createHash('sha256').update(secret).digest()
  await app.register(secureSession, { key, cookie: { path: '/', httpOnly: true } })
  app.get(TOKEN_PATH, (request, reply) => {
    const session = request.session.data()
    if (session?.refresh_token) reply.send(tokenObject(session))
    else reply.code(401).send()
  })
  app.get('/bench/session', (request, reply) => {
    for (const [name, value] of Object.entries(given)) request.session.set(name, value)
    reply.send()
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address()
  return {
    port,
    cookie(session) {
      given = session
      return cookieSetBy(`http://127.0.0.1:${port}/bench/session`)
    }
  }
}
