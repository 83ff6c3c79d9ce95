// HTTP clients of the API proxy that keep many requests open at the same time.

import { once } from 'node:events'
import http from 'node:http'
import type { ExecutionContext } from 'ava'
import { eventually } from '../helpers/eventually.js'
import { signIn } from '../helpers/server.js'
import type { ProxiedServer, TestUpstream } from '../helpers/upstream.js'

type Test = Pick<ExecutionContext, 'teardown'>

export interface Sent {
  /** The Cookie header. */
  readonly cookie: string
  readonly path?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Opens a request whose body the caller sends. */
export function open(t: Test, { server }: ProxiedServer, sent: Sent): http.ClientRequest {
  const { cookie, path = '/api/x', method = 'GET', headers = {} } = sent
  const request = http.request({
    port: server.port,
    host: '127.0.0.1',
    path,
    method,
    headers: { Cookie: cookie, 'Sec-Fetch-Site': 'same-origin', ...headers },
    agent: false
  })
  request.on('error', () => {})
  // The server would otherwise wait for this request when it stops.
  t.teardown(() => request.destroy())
  return request
}

/** Sends a request without a body. */
export function ask(t: Test, proxied: ProxiedServer, sent: Sent): http.ClientRequest {
  return open(t, proxied, sent).end()
}

export async function statusOf(request: http.ClientRequest): Promise<number | undefined> {
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  response.resume()
  return response.statusCode
}

/** Signs in with a new browser. Returns the Cookie header of the session. */
export async function newSession({ newBrowser }: ProxiedServer): Promise<string> {
  const browser = newBrowser()
  await signIn(browser)
  return browser.cookies
    .all()
    .map(({ name, value }) => `${name}=${value}`)
    .join('; ')
}

/**
 * Sends 64 requests that take all slots of the upstream, which must not respond to them. Each session must belong to
 * another user, because each user can have only one of the 8 reserved slots.
 */
export async function takeAllPlaces(
  t: Test,
  proxied: ProxiedServer,
  upstream: TestUpstream,
  { sessions, path }: { readonly sessions: readonly string[]; readonly path: string }
): Promise<http.ClientRequest[]> {
  const round = () => sessions.map(cookie => ask(t, proxied, { cookie, path }))
  const common = Array.from({ length: 7 }, round).flat()
  await eventually(() => upstream.requests.length === 56)
  const reserved = round()
  await eventually(() => upstream.requests.length === 64)
  return [...common, ...reserved]
}

/** Calls the function eight times, one call after another. */
export async function eight<T>(create: (index: number) => Promise<T>): Promise<T[]> {
  const all: T[] = []
  while (all.length < 8) all.push(await create(all.length))
  return all
}
