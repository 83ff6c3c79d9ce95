import { randomBytes } from 'node:crypto'
import type { Config } from '../../../config/settings.js'
import { cookieNames } from '../../../http/routes/cookies.js'
import { createMode } from '../../../modes/index.js'
import type { IdentityProvider } from '../../../provider/client.js'
import type { TokenSet } from '../../../provider/token-set.js'
import { createKeyring } from '../../../session/keyring.js'
import { createSessionCookie, SessionTooLargeError } from '../../../session/session-cookie.js'
import { type Finding, findingsFor } from '../finding.js'
import { SAMPLE_NONCE, sampleIdToken, sampleMetadata, sampleToken } from '../sample-token.js'

const cookie = findingsFor('cookie')
const headers = findingsFor('headers')

/** Encrypts a sample session as after a login with these settings, and measures the size of its cookies. */
export async function sessionSize(config: Config, idp: IdentityProvider, now: () => number): Promise<Finding[]> {
  let cookies: readonly string[]
  try {
    cookies = await sealedSample(config, idp, now)
  } catch (error) {
    if (!(error instanceof SessionTooLargeError)) throw error
    const message = `A session would take about ${thousands(error.sizes.sealed ?? 0)} characters, which does not fit into four cookies, so nobody could sign in.`
    return [cookie.failed(message, 'Request fewer scopes.')]
  }
  const characters = cookies.join('').length
  const count = cookies.length
  const message = `A session takes about ${thousands(characters)} characters in ${count === 1 ? 'one cookie' : `${count} cookies`}.`
  return [
    count === 1
      ? cookie.ok(message)
      : cookie.warning(message, 'Request fewer scopes if you can, because every request carries all these cookies.'),
    proxyLimits(cookies)
  ]
}

/** Returns `name=value` for each cookie of the sample session. */
async function sealedSample(config: Config, idp: IdentityProvider, now: () => number): Promise<string[]> {
  const { platform, session } = config
  const tokensFor = async (scope: readonly string[]): Promise<TokenSet> => ({
    accessToken: sampleToken(platform.clientId, scope, now()),
    refreshToken: randomBytes(32).toString('base64url').slice(0, 42),
    expiresIn: 3599,
    scope,
    idToken: scope.includes('openid') ? sampleIdToken(platform.clientId, now()) : undefined
  })
  const sampleIdp: IdentityProvider = {
    ...idp,
    // This metadata contains an end-session endpoint. If the setting `logout` is idp, the session then contains an ID token.
    metadata: async () => ({
      ...sampleMetadata,
      isAps: platform.issuer === undefined && platform.tokenEndpoint === undefined
    }),
    authorizationCodeGrant: () => tokensFor(mode.loginScope.split(' ')),
    refreshTokenGrant: ({ scope }) => tokensFor(scope.split(' '))
  }
  const mode = createMode(config, sampleIdp, now)
  const exchanged = await mode.exchangeCode({ code: '', codeVerifier: '', nonce: SAMPLE_NONCE, timeoutMs: 1000 })
  const { state } = exchanged.isComplete ? exchanged : await mode.nextRequest(exchanged.state, 1000)
  const { fields, identity } = state

  const sealer = createKeyring([session.secret]).sealer('sample')
  const { session: name } = cookieNames(session.cookieName, platform.callbackUrl)
  const { maxAgeSeconds, absoluteMaxAgeSeconds } = session
  const sessionCookie = createSessionCookie({ sealer, name, maxAgeSeconds, absoluteMaxAgeSeconds, now })
  const id = randomBytes(16).toString('base64url')
  const chunks = sessionCookie.seal({ id, rev: 1, loggedInAt: now(), issuedAt: now(), fields, identity })
  return chunks.map((chunk, index) => `${sessionCookie.names[index]}=${chunk}`)
}

const ATTRIBUTES_LENGTH = 'Set-Cookie: ; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure\r\n'.length
// The usual size of all other headers in bytes, in a browser's request and in our response.
const OTHER_REQUEST_HEADERS = 1500
const OTHER_RESPONSE_HEADERS = 700

interface Limit {
  readonly proxy: string
  /** The default limit for the `Cookie` line of a request, in bytes. */
  readonly cookieLine?: number
  /** The default limit for all headers of a request, in bytes. */
  readonly request?: number
  /** The default limit for all headers of a response, in bytes. */
  readonly response?: number
  /** The option of the proxy that raises the limit. */
  readonly option: string
}

// The buffer of nginx is one memory page, which has 4 kB on most machines. HAProxy reserves 1 kB of its buffer of 16 kB.
const limits: readonly Limit[] = [
  { proxy: 'nginx', response: 4096, option: 'proxy_buffer_size 32k and proxy_buffers 8 32k' },
  { proxy: 'nginx', cookieLine: 8192, option: 'large_client_header_buffers 8 32k' },
  { proxy: 'Apache', cookieLine: 8190, option: 'LimitRequestFieldSize 32768' },
  { proxy: 'Apache', response: 8192, option: 'ProxyIOBufferSize 32768' },
  { proxy: 'HAProxy', request: 15_360, response: 15_360, option: 'tune.bufsize 32768' }
]

function proxyLimits(cookies: readonly string[]): Finding {
  const cookieLine = `Cookie: ${cookies.join('; ')}\r\n`.length
  const response = cookies.join('').length + cookies.length * ATTRIBUTES_LENGTH + OTHER_RESPONSE_HEADERS
  const sizes = { cookieLine, request: cookieLine + OTHER_REQUEST_HEADERS, response }
  const exceeded = limits.filter(limit =>
    (['cookieLine', 'request', 'response'] as const).some(
      part => sizes[part] > (limit[part] ?? Number.POSITIVE_INFINITY)
    )
  )
  const message = `Requests carry ${kilobytes(sizes.request)} of headers and the callback answers with ${kilobytes(response)}`
  if (exceeded.length === 0) return headers.ok(`${message}, which nginx, Apache and HAProxy accept by default.`)
  const proxies = [...new Set(exceeded.map(({ proxy }) => proxy))]
  const options = proxies.map(name => {
    const ofProxy = exceeded.filter(({ proxy }) => proxy === name).map(({ option }) => option)
    return `${name}: ${ofProxy.join(', ')}`
  })
  return headers.warning(
    `${message}, which is more than ${proxies.join(' and ')} ${proxies.length === 1 ? 'accepts' : 'accept'} by default.`,
    `If such a proxy forwards the requests, set for ${options.join('; ')}.`
  )
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`
}

/** Rounds to hundreds, because the size of real tokens varies. */
function thousands(characters: number): string {
  return (Math.round(characters / 100) * 100).toLocaleString('en')
}
