// A load balancer. It sends requests to the servers in turn and retries a request at the next server if one does not
// respond.
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import { listen } from '../../helpers/ports.js'
import type { Teardown } from '../../helpers/scope.js'

interface ProxyOptions {
  /** Returns the current servers. It is called for each request. */
  readonly targets: () => readonly { readonly url: string }[]
  readonly random: () => number
}

/** Marks a response of the load balancer itself. */
export const PROXY_HEADER = 'x-given-up-by'
const HOP_BY_HOP = ['connection', 'keep-alive', 'transfer-encoding']
const MAX_TRIES = 6
const PAUSE_MS = 50
// 75 s is the default of nginx. With Node's default of 5 s, the server would often close a connection just as the next
// request is sent on it.
const KEEP_ALIVE_MS = 75_000

export async function startProxy(scope: Teardown, { targets, random }: ProxyOptions) {
  const agent = new http.Agent({ keepAlive: true })
  let turn = 0
  let losing = 0

  function pass(request: IncomingMessage, response: ServerResponse, tries: number): void {
    const all = targets()
    const target = all[turn++ % all.length]
    const fail = () => {
      if (response.headersSent || response.destroyed) response.destroy()
      else if (tries >= MAX_TRIES) response.writeHead(502, { [PROXY_HEADER]: 'proxy' }).end()
      else setTimeout(() => pass(request, response, tries + 1), PAUSE_MS * tries)
    }
    if (!target) {
      fail()
      return
    }
    const outgoing = http.request(new URL(request.url ?? '/', target.url), {
      method: request.method ?? 'GET',
      headers: request.headers,
      agent
    })
    outgoing.on('error', fail)
    outgoing.on('response', answer => {
      if (random() < losing) {
        answer.resume()
        response.socket?.destroy()
        return
      }
      const headers = { ...answer.headers }
      for (const name of HOP_BY_HOP) delete headers[name]
      response.writeHead(answer.statusCode ?? 502, headers)
      answer.on('error', () => response.destroy())
      answer.pipe(response)
    })
    response.once('close', () => {
      if (!response.writableFinished) outgoing.destroy()
    })
    outgoing.end()
  }

  const server = http.createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) =>
    pass(request, response, 1)
  )
  const port = await listen(scope, server)
  scope.teardown(() => agent.destroy())
  return {
    url: `http://127.0.0.1:${port}`,
    /** Loses this share of the responses on the way to the browser. */
    lose(share: number) {
      losing = share
    }
  }
}
