/** The code of the platform's tutorials: Express, cookie-session (signed but readable), and a refresh in middleware. */
import cookieSession from 'cookie-session'
import express from 'express'
import {
  CALLBACK_PATH,
  CALLBACK_URL,
  CLIENT_ID,
  HUBS_PATH,
  INTERNAL_SCOPES,
  LOGIN_PATH,
  PUBLIC_SCOPES,
  TOKEN_PATH
} from '../settings.js'
import { cookieSetBy, listen } from './common.js'

/** @type {import('./common.js').Start} */
export async function start({ secret, providerUrl, apiUrl, wwwroot, port: wanted }) {
  let given
  const app = express()
  app.use(express.static(wwwroot))
  app.use(cookieSession({ secret, maxAge: 24 * 60 * 60 * 1000 }))

  app.get(LOGIN_PATH, (_req, res) => {
    const query = new URLSearchParams({
      client_id: CLIENT_ID,
      response_type: 'code',
      redirect_uri: CALLBACK_URL,
      scope: INTERNAL_SCOPES.join(' ')
    })
    res.redirect(`${providerUrl}/authorize?${query}`)
  })
  app.get(CALLBACK_PATH, async (req, res) => {
    const form = { grant_type: 'authorization_code', code: req.query.code, redirect_uri: CALLBACK_URL }
    await keepTokens(req, await tokenRequest(form))
    res.redirect('/')
  })
  app.get(TOKEN_PATH, refreshTokens, (req, res) => {
    res.json(req.publicToken)
  })
  app.get(HUBS_PATH, refreshTokens, async (req, res) => {
    const headers = { Authorization: `Bearer ${req.internalToken.access_token}` }
    const response = await fetch(apiUrl, { headers })
    if (!response.ok) throw new Error(`the API answered ${response.status}`)
    res.json(await response.json())
  })
  app.get('/bench/session', (req, res) => {
    Object.assign(req.session, given)
    res.end()
  })

  async function refreshTokens(req, res, next) {
    const { refresh_token, expires_at } = req.session
    if (!refresh_token) {
      res.status(401).end()
      return
    }
    if (expires_at < Date.now()) {
      const scope = INTERNAL_SCOPES.join(' ')
      await keepTokens(req, await tokenRequest({ grant_type: 'refresh_token', refresh_token, scope }))
    }
    const expires_in = Math.round((req.session.expires_at - Date.now()) / 1000)
    req.internalToken = { access_token: req.session.internal_token, expires_in }
    req.publicToken = { access_token: req.session.public_token, expires_in }
    next()
  }

  async function keepTokens(req, internal) {
    const form = { grant_type: 'refresh_token', refresh_token: internal.refresh_token, scope: PUBLIC_SCOPES.join(' ') }
    const narrowed = await tokenRequest(form)
    req.session.public_token = narrowed.access_token
    req.session.internal_token = internal.access_token
    req.session.refresh_token = narrowed.refresh_token
    req.session.expires_at = Date.now() + internal.expires_in * 1000
  }

  async function tokenRequest(form) {
    const headers = { Authorization: `Basic ${Buffer.from(`${CLIENT_ID}:${secret}`).toString('base64')}` }
    const response = await fetch(`${providerUrl}/token`, { method: 'POST', headers, body: new URLSearchParams(form) })
    if (!response.ok) throw new Error(`the provider answered ${response.status}`)
    return response.json()
  }

  const port = await listen(app, wanted)
  return {
    port,
    cookie(session) {
      given = session
      return cookieSetBy(`http://127.0.0.1:${port}/bench/session`)
    }
  }
}
