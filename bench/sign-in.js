/** Completes a login at this server. */
import { CALLBACK_PATH, cookieFrom } from './candidates/common.js'
import { get, HEADERS } from './get.js'
import { createSessions } from './sessions.js'

const LOGIN_COOKIE = /_login=/

/**
 * Returns the `Cookie` header of the browser without the login cookie.
 * @param {string} url
 * @param {string} secret
 * @param {import('node:http').Agent} [agent]
 */
export async function signIn(url, secret, agent) {
  const { query, cookie } = createSessions(secret).callback()
  const answer = await get({ url: url + CALLBACK_PATH + query, headers: { ...HEADERS, cookie }, agent })
  if (answer.status !== 302)
    throw new Error(`The callback responded with ${answer.status} ${answer.body.slice(0, 200)}`)
  return cookieFrom(answer.headers['set-cookie'].filter(line => !LOGIN_COOKIE.test(line)))
}
