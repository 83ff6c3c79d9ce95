/** Sends one request. */
import http from 'node:http'

// The headers that `fetch` in a page sends. Every candidate gets the same headers.
export const HEADERS = { accept: '*/*', 'accept-encoding': 'gzip, deflate, br', 'sec-fetch-site': 'same-origin' }

/**
 * Uses node:http and not `fetch`, because `fetch` adds headers. Routes that must be opened as a page reject a request with
 * these headers.
 * @param {{ url: string, headers?: Record<string, string>, agent?: http.Agent | false }} request uses its own connection, unless
 *   it has an agent
 */
export function get({ url, headers, agent = false }) {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { headers, agent }, async response => {
      try {
        const chunks = await response.toArray()
        resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks).toString() })
      } catch (error) {
        reject(error)
      }
    })
    request.on('error', reject)
  })
}
