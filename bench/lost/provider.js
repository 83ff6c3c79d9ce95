/**
 * The provider of the comparison, and the API behind the programs. The provider signs everyone in at once, its refresh tokens
 * can be used once, and it counts what it sees. The API accepts an access token only while it is valid.
 */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import http from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { answerParent } from '../processes.js'
import { CLIENT_ID } from '../settings.js'
import { createLogins } from './logins.js'
import { API_PATH } from './paths.js'
import { between, createRandom } from './random.js'

const SHORTEST_MS = 20
const LONGEST_MS = 400
// Resource servers allow for clocks that differ by a little. The programs also compute with whole seconds.
const LEEWAY_MS = 1000
const ID_TOKEN_SECONDS = 3600
const RETRY_SECONDS = 2
const KEY_ID = 'lost'

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const jwks = { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: KEY_ID, alg: 'RS256', use: 'sig' }] }

/**
 * @typedef {object} Setup
 * @property {number} seed
 * @property {number} lifetimeSeconds the lifetime of access tokens
 * @property {import('./logins.js').Reuse} [reuse]
 */

let lifetimeSeconds = 3
let slowMs = 0
/** The status of every response to a refresh, while the provider fails. */
let failure
/** @type {import('./logins.js').Reuse} */
let reuse = 'ends-login'
/** The refreshes of this case that the provider has not responded to yet. Very slow ones of an earlier case may still end. */
let pending = new Set()
let random = createRandom(1)
let logins = newLogins()
/** The logins between `/authorize` and the code exchange, by their codes. */
const codes = new Map()
const api = { accepted: 0, refused: 0 }
let issuer = ''

function newLogins() {
  return createLogins({ lifetimeMs: lifetimeSeconds * 1000, leewayMs: LEEWAY_MS, now: Date.now, reuse })
}

const routes = {
  '/.well-known/openid-configuration': (_request, response) =>
    json(response, 200, {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      userinfo_endpoint: `${issuer}/userinfo`,
      jwks_uri: `${issuer}/jwks`,
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
      code_challenge_methods_supported: ['S256'],
      scopes_supported: ['openid', 'profile', 'email', 'offline_access', 'data:read', 'viewables:read']
    }),
  '/jwks': (_request, response) => json(response, 200, jwks),
  '/authorize': authorize,
  '/token': token,
  '/userinfo'(request, response) {
    const user = logins.isAccepted(bearer(request)) ? logins.userOf(bearer(request)) : undefined
    if (user === undefined) json(response, 401, { error: 'invalid_token' })
    else json(response, 200, claimsOf(user))
  },
  [API_PATH](request, response) {
    const isAccepted = logins.isAccepted(bearer(request))
    api[isAccepted ? 'accepted' : 'refused']++
    if (isAccepted) json(response, 200, { items: ['one', 'two', 'three'] })
    else json(response, 401, { error: 'invalid_token' })
  }
}

const server = http.createServer(async (request, response) => {
  const route = routes[request.url.split('?')[0]]
  try {
    if (route) await route(request, response)
    else json(response, 404, { error: 'not_found' })
  } catch (error) {
    process.stderr.write(`${error.stack}\n`)
    response.destroy()
  }
})
server.keepAliveTimeout = 60_000

/** The browser names the user in a header, as it would be known from a cookie of the provider. */
function authorize(request, response) {
  const { searchParams: query } = new URL(request.url, issuer)
  const code = randomBytes(16).toString('base64url')
  codes.set(code, {
    user: String(request.headers['x-user']),
    scope: query.get('scope') ?? '',
    nonce: query.get('nonce') ?? undefined,
    challenge: query.get('code_challenge') ?? undefined
  })
  const location = new URL(query.get('redirect_uri'))
  location.searchParams.set('code', code)
  if (query.has('state')) location.searchParams.set('state', query.get('state'))
  location.searchParams.set('iss', issuer)
  response.writeHead(302, { Location: location.href }).end()
}

/**
 * Half of the time passes before the provider uses the refresh token, and half of it before the response. If the caller is
 * gone by then, the token has been used all the same.
 */
async function token(request, response) {
  const form = new URLSearchParams(Buffer.concat(await request.toArray()).toString())
  const isRefresh = form.get('grant_type') === 'refresh_token'
  const delayMs = between(random, SHORTEST_MS, LONGEST_MS) + (isRefresh ? slowMs : 0)
  const refreshes = pending
  if (isRefresh) refreshes.add(response)
  await pause(delayMs / 2)
  if (isRefresh && failure) {
    refreshes.delete(response)
    const headers = failure === 429 ? { 'Retry-After': RETRY_SECONDS } : {}
    json(response, failure, { error: 'temporarily_unavailable' }, headers)
    return
  }
  const answer = isRefresh ? refreshed(form, delayMs / 2) : exchanged(form, delayMs / 2)
  await pause(delayMs / 2)
  refreshes.delete(response)
  if (answer === undefined) json(response, 400, { error: 'invalid_grant' })
  else json(response, 200, answer)
}

function exchanged(form, delayMs) {
  const found = codes.get(form.get('code'))
  if (found === undefined || !isChallengeOf(form.get('code_verifier'), found.challenge)) return undefined
  codes.delete(form.get('code'))
  return tokenResponse(logins.begin(found.user, found.scope, delayMs), found.nonce)
}

function refreshed(form, delayMs) {
  const tokens = logins.refresh(form.get('refresh_token'), delayMs)
  return tokens && tokenResponse(tokens)
}

function tokenResponse({ accessToken, refreshToken, login }, nonce) {
  return {
    token_type: 'Bearer',
    access_token: accessToken,
    refresh_token: refreshToken,
    expires_in: lifetimeSeconds,
    ...(login.scope.split(' ').includes('openid') && { id_token: idToken(login.user, nonce) })
  }
}

function isChallengeOf(verifier, challenge) {
  if (challenge === undefined) return true
  return (
    createHash('sha256')
      .update(verifier ?? '')
      .digest('base64url') === challenge
  )
}

function idToken(user, nonce) {
  const iat = Math.floor(Date.now() / 1000)
  const claims = { ...claimsOf(user), iss: issuer, aud: CLIENT_ID, iat, exp: iat + ID_TOKEN_SECONDS, nonce }
  const signed = [{ alg: 'RS256', kid: KEY_ID, typ: 'JWT' }, claims]
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`
}

/** oauth2-proxy asks the userinfo endpoint for its claims if one of them is missing in the ID token. */
function claimsOf(user) {
  return {
    sub: user,
    name: `User ${user}`,
    preferred_username: user,
    email: `${user}@mail.example`,
    email_verified: true,
    groups: ['users']
  }
}

/** Every program passes the access token to the API in its own header. */
function bearer({ headers }) {
  const { authorization, 'x-forwarded-access-token': oauth2Proxy, oidc_access_token: modAuthOpenidc } = headers
  return oauth2Proxy ?? modAuthOpenidc ?? authorization?.replace(/^Bearer /i, '') ?? ''
}

function json(response, status, body, headers = {}) {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...headers })
  response.end(JSON.stringify(body))
}

answerParent({
  async listen() {
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
    issuer = `http://127.0.0.1:${server.address().port}`
    return issuer
  },
  /** @param {Setup} setup */
  begin(setup) {
    lifetimeSeconds = setup.lifetimeSeconds
    reuse = setup.reuse ?? 'ends-login'
    random = createRandom(setup.seed)
    slowMs = 0
    failure = undefined
    logins = newLogins()
    pending = new Set()
    codes.clear()
    Object.assign(api, { accepted: 0, refused: 0 })
  },
  /** Makes all later answers to refreshes slower by this time. */
  slow(ms) {
    slowMs = ms
  },
  /** Makes all later refreshes fail with this status, or end the failures. */
  fail(status) {
    failure = status
  },
  report: () => ({ ...logins.counts, inProgress: pending.size, api: { ...api }, revokedUsers: logins.revokedUsers() })
})
