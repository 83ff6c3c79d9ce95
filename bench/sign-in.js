/** Completes a login at a server of the benchmark, whose stand-in identity provider accepts every code. */
import { CALLBACK_PATH, cookieFrom } from './candidates/common.js'
import { get, HEADERS } from './get.js'
import { createSessions } from './sessions.js'

/**
 * Returns the `Cookie` header of the browser without the login cookie.
 * @param {string} url
 * @param {string} secret
 */
export async function signIn(url, secret) {
  const { query, cookie } = createSessions(secret).callback()
  const answer = await get({ url: url + CALLBACK_PATH + query, headers: { ...HEADERS, cookie } })
  if (answer.status !== 302) throw new Error(`The callback answered ${answer.status} ${answer.body.slice(0, 200)}`)
  return cookieFrom(answer.headers['set-cookie'].filter(line => !line.includes('_login=')))
}
