/** One request. */
import http from 'node:http'

// As a page's fetch sends them; every candidate gets the same.
export const HEADERS = { accept: '*/*', 'accept-encoding': 'gzip, deflate, br', 'sec-fetch-site': 'same-origin' }

/**
 * Not `fetch`, which adds headers of its own and would be refused as a script where only a person may go.
 * @param {{ url: string, headers?: Record<string, string>, agent?: http.Agent | false }} request a connection of its own
 *   unless it has an agent
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
