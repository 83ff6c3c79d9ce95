/** Express with express-openid-connect as in its documentation. It encrypts the session again for each response. */
import express from 'express'
import openidConnect from 'express-openid-connect'
import { CALLBACK_URL, CLIENT_ID } from '../settings.js'
import { CALLBACK_PATH, cookieSetBy, HUBS_PATH, LOGIN_PATH, listen, TOKEN_PATH } from './common.js'

/**
 * @param {import('../settings.js').Bench} bench
 * @returns {Promise<import('./common.js').Candidate>}
 */
export async function start({ secret, providerUrl, apiUrl, port: wanted }) {
  let given
  const app = express()
  app.use(
    openidConnect.auth({
      issuerBaseURL: providerUrl,
      baseURL: new URL(CALLBACK_URL).origin,
      clientID: CLIENT_ID,
      clientSecret: secret,
      secret,
      authRequired: false,
      authorizationParams: { response_type: 'code', scope: 'openid profile email offline_access data:read' },
      routes: { login: LOGIN_PATH, callback: CALLBACK_PATH }
    })
  )
  app.get(TOKEN_PATH, (req, res) => {
    if (!req.oidc.accessToken) {
      res.status(401).end()
      return
    }
    const { access_token, expires_in } = req.oidc.accessToken
    res.json({ access_token, expires_in })
  })
  // https://github.com/auth0/express-openid-connect/blob/v3.4.0/EXAMPLES.md#5-obtaining-and-using-refresh-tokens
  app.get(HUBS_PATH, async (req, res) => {
    if (!req.oidc.accessToken) {
      res.status(401).end()
      return
    }
    let { token_type, access_token, isExpired, refresh } = req.oidc.accessToken
    if (isExpired()) {
      ;({ access_token } = await refresh())
    }
    const response = await fetch(apiUrl, { headers: { Authorization: `${token_type} ${access_token}` } })
    res.status(response.status).json(await response.json())
  })
  app.get('/bench/session', (req, res) => {
    const { public_token, internal_token, refresh_token, expires_at } = given
    Object.assign(req.appSession, {
      access_token: public_token,
      // The library has no second access token. The ID token takes the place of the internal token.
      id_token: internal_token,
      refresh_token,
      token_type: 'Bearer',
      expires_at: Math.round(expires_at / 1000)
    })
    res.end()
  })

  const port = await listen(app, wanted)
  return {
    port,
    cookie(session) {
      given = session
      return cookieSetBy(`http://127.0.0.1:${port}/bench/session`)
    }
  }
}
