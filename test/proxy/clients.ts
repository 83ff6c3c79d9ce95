// HTTP clients of the API proxy that keep many requests open at the same time.

import { once } from 'node:events'
import http from 'node:http'
import type { ExecutionContext } from 'ava'
import type { TestSettings } from '../helpers/config.js'
import { signIn } from '../helpers/server.js'
import { type ProxiedServer, startProxy } from '../helpers/upstream.js'
import { sessionHeader } from '../web/support.js'

type Test = Pick<ExecutionContext, 'teardown'>

/** Starts a server whose proxy leads `/api/*` to an upstream, and signs its browser in. */
export async function startBehind<Upstream extends { readonly origin: string }>(
  t: Test,
  starting: Promise<Upstream>,
  { options = '', ...settings }: TestSettings['apiProxy'] & { readonly options?: string } = {}
) {
  const upstream = await starting
  const rules = [`GET,POST /api/* ${upstream.origin}/* ${options}`.trim()]
  return { upstream, ...(await startProxy(t, { ...settings, rules })) }
}

export interface Sent {
  /** The Cookie header. By default, it contains the first session. */
  readonly cookie?: string
  readonly path?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

// A test may wait for something else before it waits for the response, which can arrive in between.
const responses = new WeakMap<http.ClientRequest, Promise<http.IncomingMessage>>()

/** Opens a request whose body the caller sends. */
export function open(t: Test, { server, cookie: first }: ProxiedServer, sent: Sent = {}): http.ClientRequest {
  const { cookie = first, path = '/api/x', method = 'GET', headers = {} } = sent
  const request = http.request({
    port: server.port,
    host: '127.0.0.1',
    path,
    method,
    headers: { Cookie: cookie, 'Sec-Fetch-Site': 'same-origin', ...headers },
    agent: false
  })
  const response = once(request, 'response').then(([response]) => response as http.IncomingMessage)
  response.catch(() => {})
  responses.set(request, response)
  // The server would otherwise wait for this request when it stops.
  t.teardown(() => request.destroy())
  return request
}

/** Sends a request without a body. */
export function ask(t: Test, proxied: ProxiedServer, sent?: Sent): http.ClientRequest {
  return open(t, proxied, sent).end()
}

export async function answerOf(request: http.ClientRequest): Promise<http.IncomingMessage> {
  const response = await responses.get(request)
  if (!response) throw new Error('The request was not opened by this file.')
  return response
}

export async function statusOf(request: http.ClientRequest): Promise<number | undefined> {
  return (await answerOf(request)).resume().statusCode
}

/** Signs in with a new browser. Returns the Cookie header of the session. */
export async function newSession({ newBrowser }: ProxiedServer): Promise<string> {
  const browser = newBrowser()
  await signIn(browser)
  return sessionHeader(browser)
}
