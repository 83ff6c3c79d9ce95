// One https address with several host names, for tests of requests that pages of other origins cause. The server is at
// `app.example.test`, with its proxy, a custom route and a site behind forward-auth. Each other host only serves pages.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { ExecutionContext } from 'ava'
import { serve } from '#src/server/serve.js'
import { selfSignedCertificate } from '../helpers/certificate.js'
import { testConfig } from '../helpers/config.js'
import { passOn } from '../helpers/deployment.js'
import { askForwardAuth } from '../helpers/gateway.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { listen } from '../helpers/ports.js'
import { startUpstream } from '../helpers/upstream.js'

/** The routes of the table, and their paths. */
export const routes = {
  login: '/api/auth/login',
  logout: '/api/auth/logout',
  profile: '/api/auth/profile',
  token: '/api/auth/token',
  proxy: '/api/proxied',
  'custom route': '/own',
  'forward-auth': '/site/'
} as const

export type RouteName = keyof typeof routes

/** A path that is a plain page on every host. With a query, the page has the referrer policy `no-referrer`. */
export const PAGE = '/page'

const HOST = 'app.example.test'

export interface SentRequest {
  readonly status: number
  readonly hasSessionCookie: boolean
}

export interface Origins {
  /** The origin of a host, for example of `app.example.test`. */
  originOf(host: string): string
  /** The request with this id, or undefined if the browser has not sent it. Preflight requests do not count. */
  requestWith(id: string): SentRequest | undefined
  /** True if a handler behind the check of the server got the request with this id. */
  reached(id: string): boolean
}

export async function startOrigins(t: ExecutionContext): Promise<Origins> {
  const sent = new Map<string, SentRequest>()
  const handled = new Set<string>()
  let target = 0
  let gatewayPort = 0

  const front = createTlsServer(selfSignedCertificate(), (incoming, answer) => {
    const { method, url = '/', headers } = incoming
    const id = idOf(url)
    answer.on('finish', () => {
      const hasSessionCookie = headers.cookie?.includes('__Host-platform_session=') === true
      if (id !== undefined && method !== 'OPTIONS') sent.set(id, { status: answer.statusCode, hasSessionCookie })
    })
    const isApp = headers.host?.startsWith(`${HOST}:`)
    if (!isApp || url.startsWith(PAGE)) sendPage(incoming, answer)
    else if (url.startsWith(routes['forward-auth'])) void answerForSite(incoming, answer)
    else passOn(incoming, answer, { port: target, path: url })
  })
  const port = await listen(t, front)
  const originOf = (host: string) => `https://${host}:${port}`

  const idp = await createHostileIdp(t, { callbackUrl: `${originOf(HOST)}/api/auth/callback` })
  const upstream = await startUpstream(t, handle)
  const config = testConfig(idp, {
    mode: 'dual',
    platform: { callbackUrl: `${originOf(HOST)}/api/auth/callback` },
    apiProxy: { rules: [`GET,POST,PUT,PATCH,DELETE ${routes.proxy} ${upstream.origin}/x`] },
    forwardAuth: { address: '127.0.0.1:0' },
    log: { level: 'fatal', requests: false }
  })
  const server = await serve(config, {
    extension: (app, { requireTokens, Router }) => {
      const router = new Router().all(routes['custom route'], requireTokens, ctx => {
        ctx.respond = false
        handle(ctx.req, ctx.res)
      })
      app.use(router.routes())
    }
  })
  t.teardown(() => server.close())
  target = server.port
  gatewayPort = server.forwardAuthPort as number

  return { originOf, requestWith: id => sent.get(id), reached: id => handled.has(id) }

  function handle({ url = '' }: IncomingMessage, answer: ServerResponse): void {
    handled.add(idOf(url) ?? '')
    answer.writeHead(200, { 'Content-Type': 'text/javascript' }).end('0')
  }

  // A gateway sends a GET with the headers of the browser. nginx removes the hop-by-hop headers.
  async function answerForSite(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const headers: Record<string, string> = {
      'x-original-method': incoming.method ?? '',
      'x-original-uri': incoming.url ?? ''
    }
    for (const [name, value] of Object.entries(incoming.headers)) {
      if (!['connection', 'upgrade', 'content-length', 'transfer-encoding'].includes(name))
        headers[name] = String(value)
    }
    const asked = await askForwardAuth(gatewayPort, { headers })
    if (asked.status === 200) handle(incoming, answer)
    else answer.writeHead(asked.status).end()
  }
}

function idOf(url: string): string | undefined {
  return new URL(url, 'http://none').searchParams.get('id') ?? undefined
}

function sendPage({ url = '' }: IncomingMessage, answer: ServerResponse): void {
  if (url.includes('?')) answer.setHeader('Referrer-Policy', 'no-referrer')
  answer.setHeader('Content-Type', 'text/html').end('<!doctype html><title>a page</title><body></body>')
}
