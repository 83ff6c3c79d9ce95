/**
 * The provider of the comparison, and the API behind the programs. The provider signs everyone in at once, its refresh tokens
 * can be used once, and it counts what it sees. The API accepts an access token only while it is valid.
 */
import { createHash, randomBytes } from 'node:crypto'
import http from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { claimsOf, discovery, idToken, jwks } from '../openid.js'
import { answerParent } from '../processes.js'
import { API_PATH } from '../settings.js'
import { createLogins } from './logins.js'
import { between, createRandom } from './random.js'

const SHORTEST_MS = 20
const LONGEST_MS = 400
// Resource servers allow for clocks that differ by a little. The programs also compute with whole seconds.
const LEEWAY_MS = 1000

/** The lifetime of access tokens. */
let lifetimeSeconds
let slowMs = 0
/** The status of every response to a refresh, while the provider fails. */
let failure
/** The refreshes of this case that the provider has not responded to yet. Very slow ones of an earlier case may still end. */
let pending = new Set()
let random
let logins
/** The logins between `/authorize` and the code exchange, by their codes. */
const codes = new Map()
let issuer = ''

const routes = {
  '/.well-known/openid-configuration': (_request, response) => json(response, 200, discovery(issuer)),
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
    json(response, failure, { error: 'temporarily_unavailable' })
    return
  }
  const answer = isRefresh
    ? tokenResponse(logins.refresh(form.get('refresh_token'), delayMs / 2))
    : exchanged(form, delayMs / 2)
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

function tokenResponse(tokens, nonce) {
  if (tokens === undefined) return undefined
  const { accessToken, refreshToken, login } = tokens
  return {
    token_type: 'Bearer',
    access_token: accessToken,
    refresh_token: refreshToken,
    expires_in: lifetimeSeconds,
    ...(login.scope.split(' ').includes('openid') && { id_token: idToken(issuer, login.user, nonce) })
  }
}

function isChallengeOf(verifier, challenge) {
  if (challenge === undefined) return true
  const hash = createHash('sha256').update(verifier ?? '')
  return hash.digest('base64url') === challenge
}

/** Every program passes the access token to the API in its own header. */
function bearer({ headers }) {
  const { authorization, 'x-forwarded-access-token': oauth2Proxy, oidc_access_token: modAuthOpenidc } = headers
  return oauth2Proxy ?? modAuthOpenidc ?? authorization?.replace(/^Bearer /i, '') ?? ''
}

function json(response, status, body) {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
  response.end(JSON.stringify(body))
}

answerParent({
  async listen() {
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
    issuer = `http://127.0.0.1:${server.address().port}`
    return issuer
  },
  /** @param {{ seed: number, lifetimeSeconds: number, reuse: import('./logins.js').Reuse }} setup */
  begin({ seed, lifetimeSeconds: lifetime, reuse }) {
    lifetimeSeconds = lifetime
    random = createRandom(seed)
    slowMs = 0
    failure = undefined
    logins = createLogins({ lifetimeMs: lifetimeSeconds * 1000, leewayMs: LEEWAY_MS, now: Date.now, reuse })
    pending = new Set()
    codes.clear()
  },
  /** Makes all later answers to refreshes slower by this time. */
  slow(ms) {
    slowMs = ms
  },
  /** Makes all later refreshes fail with this status, or end the failures. */
  fail(status) {
    failure = status
  },
  report: () => ({ inProgress: pending.size, revokedUsers: logins.revokedUsers() })
})
