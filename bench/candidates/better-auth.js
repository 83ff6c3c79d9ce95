/**
 * better-auth as in its documentation. Without a database, the session and the tokens are in encrypted cookies.
 * https://better-auth.com/docs/concepts/session-management (stateless sessions), https://better-auth.com/docs/plugins/generic-oauth
 */
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { fromNodeHeaders, toNodeHandler } from 'better-auth/node'
import { genericOAuth } from 'better-auth/plugins/generic-oauth'
import express from 'express'
import { CALLBACK_URL, CLIENT_ID } from '../settings.js'
import { HUBS_PATH, LOGIN_PATH, listen } from './common.js'

const PROVIDER_ID = 'bench'

/**
 * @param {import('../settings.js').Bench & { hasDatabase?: boolean }} bench `hasDatabase` keeps the tokens in the database of
 *   this process
 * @returns {Promise<{ port: number }>}
 */
export async function start({ secret, providerUrl, apiUrl, port, hasDatabase = false }) {
  const auth = betterAuth({
    ...(hasDatabase && { database: memoryAdapter({ user: [], session: [], account: [], verification: [] }) }),
    baseURL: new URL(CALLBACK_URL).origin,
    secret,
    // All people of the benchmark have the same address.
    rateLimit: { enabled: false },
    plugins: [
      genericOAuth({
        config: [
          {
            providerId: PROVIDER_ID,
            clientId: CLIENT_ID,
            clientSecret: secret,
            discoveryUrl: `${providerUrl}/.well-known/openid-configuration`,
            scopes: ['openid', 'profile', 'email', 'offline_access']
          }
        ]
      })
    ]
  })
  const app = express()
  app.get(LOGIN_PATH, async (req, res) => {
    const { headers, response } = await auth.api.signInSocial({
      body: { provider: PROVIDER_ID, callbackURL: '/' },
      headers: fromNodeHeaders(req.headers),
      returnHeaders: true
    })
    res.setHeader('Set-Cookie', headers.getSetCookie())
    res.redirect(response.url)
  })
  // https://better-auth.com/docs/concepts/oauth (get access token): it refreshes an access token that has expired.
  app.get(HUBS_PATH, async (req, res) => {
    try {
      const { headers, response } = await auth.api.getAccessToken({
        body: hasDatabase ? await accountOf(req) : { useAccountCookie: true },
        headers: fromNodeHeaders(req.headers),
        returnHeaders: true
      })
      res.setHeader('Set-Cookie', headers.getSetCookie())
      const answer = await fetch(apiUrl, { headers: { Authorization: `Bearer ${response.accessToken}` } })
      res.status(answer.status).json(await answer.json())
    } catch (error) {
      if (error.statusCode === undefined) throw error
      res.status(error.statusCode).json({ message: error.message })
    }
  })
  async function accountOf(req) {
    const [account] = await auth.api.listUserAccounts({ headers: fromNodeHeaders(req.headers) })
    return { accountId: account.id }
  }

  app.use(toNodeHandler(auth))
  return { port: await listen(app, port) }
}
