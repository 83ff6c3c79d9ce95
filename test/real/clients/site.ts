// The server with proxy rules for the platform, and a signed-in user whose browser runs the program.
import { createServer } from 'node:http'
import { passOn } from '../../helpers/deployment.js'
import { listen } from '../../helpers/ports.js'
import { startProxy } from '../../helpers/upstream.js'
import type { Lab } from './lab.js'
import { startPlatform } from './platform.js'

export type Site = Awaited<ReturnType<typeof startSite>>

/** @param paths the first segments of the APIs that the rules forward */
export async function startSite(lab: Lab, paths: readonly string[]) {
  const platform = await startPlatform(lab)
  const rules = paths.map(path => `GET,POST,PUT,PATCH,DELETE /${path}/** ${platform.origin}/${path}/**`)
  const { server, cookie, origin } = await startProxy(lab, { rules })
  // Programs for Node have no cookies. The relay adds to each of their requests what the browser adds to a request of a page: the
  // session cookie and the headers that say where the request comes from. It changes nothing else.
  const ofPage = { host: new URL(origin).host, cookie, origin, 'sec-fetch-site': 'same-origin' }
  const added = { ...ofPage, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }
  const relay = createServer((request, response) =>
    passOn(request, response, { port: server.port, path: request.url, added })
  )
  return { platform, url: `http://127.0.0.1:${await listen(lab, relay)}` }
}
