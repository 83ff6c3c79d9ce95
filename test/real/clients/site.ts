// The server with proxy rules for the platform, and a signed-in user whose browser runs the program.
import http from 'node:http'
import { listen } from '../../helpers/ports.js'
import { startProxy } from '../../helpers/upstream.js'
import type { Lab } from './lab.js'
import { type Files, startPlatform } from './platform.js'

export type Site = Awaited<ReturnType<typeof startSite>>

/** @param paths the first segments of the APIs that the rules forward */
export async function startSite(lab: Lab, paths: readonly string[], files?: Files) {
  const platform = await startPlatform(lab, files)
  const rules = paths.map(path => `GET,POST,PUT,PATCH,DELETE /${path}/** ${platform.origin}/${path}/**`)
  const { server, cookie, origin } = await startProxy(lab, { rules })
  const url = await startRelay(lab, server.port, { host: new URL(origin).host, cookie, origin })
  return { platform, url }
}

/**
 * Programs for Node have no cookies. The relay adds to each of their requests what the browser adds to a request of a page: the
 * session cookie and the headers that say where the request comes from. It changes nothing else.
 */
async function startRelay(lab: Lab, port: number, added: Readonly<Record<string, string>>): Promise<string> {
  const relay = http.createServer((request, response) => {
    const { method, url: path, headers } = request
    const fromPage = { ...added, 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }
    const forwarded = http.request(
      { host: '127.0.0.1', port, method, path, headers: { ...headers, ...fromPage } },
      answer => {
        response.writeHead(answer.statusCode ?? 0, answer.rawHeaders)
        answer.pipe(response)
      }
    )
    forwarded.on('error', () => response.destroy())
    request.pipe(forwarded)
  })
  return `http://127.0.0.1:${await listen(lab, relay)}`
}
