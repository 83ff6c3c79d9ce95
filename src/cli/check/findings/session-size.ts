import { randomBytes } from 'node:crypto'
import type { Config } from '../../../config/settings.js'
import { cookieNames } from '../../../http/cookies.js'
import type { IdentityProvider } from '../../../idp/client.js'
import type { TokenSet } from '../../../idp/token-set.js'
import { createMode } from '../../../modes/index.js'
import { createKeyring } from '../../../sealing/keyring.js'
import { createSessionCookie, SessionTooLargeError } from '../../../session/session-cookie.js'
import { type Finding, findingsFor } from '../finding.js'
import { SAMPLE_NONCE, sampleIdToken, sampleMetadata, sampleToken } from '../sample-token.js'

const cookie = findingsFor('cookie')
const headers = findingsFor('headers')

/** Seals a session as a login with these settings would, and measures it. */
export async function sessionSize(config: Config, idp: IdentityProvider, now: () => number): Promise<Finding[]> {
  let cookies: readonly string[]
  try {
    cookies = await sealedSample(config, idp, now)
  } catch (error) {
    if (!(error instanceof SessionTooLargeError)) throw error
    const message = `A session would take about ${thousands(error.sizes.sealed ?? 0)} characters, more than four cookies hold: nobody could sign in.`
    return [cookie.failed(message, 'Ask for fewer scopes.')]
  }
  const characters = cookies.join('').length
  const count = cookies.length
  const message = `A session takes about ${thousands(characters)} characters in ${count === 1 ? 'one cookie' : `${count} cookies`}.`
  return [
    count === 1
      ? cookie.ok(message)
      : cookie.warning(message, 'Ask for fewer scopes if you can; every request carries all of it.'),
    roomInProxies(cookies)
  ]
}

/** `name=value` of each cookie. */
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
    // An endpoint is known, so that a logout that leads there keeps the ID token as it would after discovery.
    metadata: async () => ({
      ...sampleMetadata,
      isAps: platform.issuer === undefined && platform.tokenEndpoint === undefined
    }),
    authorizationCodeGrant: () => tokensFor(mode.loginScope.split(' ')),
    refreshTokenGrant: ({ scope }) => tokensFor(scope.split(' '))
  }
  const mode = createMode(config, sampleIdp, now)
  const login = await mode.exchangeCode({ code: '', codeVerifier: '', nonce: SAMPLE_NONCE })

  const sealer = createKeyring([session.secret]).sealer('sample')
  const { session: name } = cookieNames(session.cookieName, platform.callbackUrl)
  const { maxAgeSeconds, absoluteMaxAgeSeconds } = session
  const sessionCookie = createSessionCookie({ sealer, name, maxAgeSeconds, absoluteMaxAgeSeconds, now })
  const id = randomBytes(16).toString('base64url')
  const chunks = sessionCookie.seal({ id, loggedInAt: now(), issuedAt: now(), ...login })
  return chunks.map((chunk, index) => `${sessionCookie.names[index]}=${chunk}`)
}

const ATTRIBUTES_LENGTH = 'Set-Cookie: ; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure\r\n'.length
// Beside the cookies: what browsers send of their own, and what the server's answers have.
const OTHER_REQUEST_HEADERS = 1500
const OTHER_ANSWER_HEADERS = 700

interface Limit {
  readonly proxy: string
  /** Bytes that it takes by default: of the `Cookie` line, of all of a request, of all of an answer. */
  readonly cookieLine?: number
  readonly request?: number
  readonly answer?: number
  readonly remedy: string
}

// nginx: its buffer is a memory page, 4 kB on most machines. HAProxy keeps 1 kB of its 16 to itself.
const limits: readonly Limit[] = [
  { proxy: 'nginx', answer: 4096, remedy: 'proxy_buffer_size 32k and proxy_buffers 8 32k' },
  { proxy: 'nginx', cookieLine: 8192, remedy: 'large_client_header_buffers 8 32k' },
  { proxy: 'Apache', cookieLine: 8190, remedy: 'LimitRequestFieldSize 32768' },
  { proxy: 'Apache', answer: 8192, remedy: 'ProxyIOBufferSize 32768' },
  { proxy: 'HAProxy', request: 15_360, answer: 15_360, remedy: 'tune.bufsize 32768' }
]

function roomInProxies(cookies: readonly string[]): Finding {
  const cookieLine = `Cookie: ${cookies.join('; ')}\r\n`.length
  const answer = cookies.join('').length + cookies.length * ATTRIBUTES_LENGTH + OTHER_ANSWER_HEADERS
  const sizes = { cookieLine, request: cookieLine + OTHER_REQUEST_HEADERS, answer }
  const passed = limits.filter(limit =>
    (['cookieLine', 'request', 'answer'] as const).some(part => sizes[part] > (limit[part] ?? Number.POSITIVE_INFINITY))
  )
  const message = `Requests carry ${kilobytes(sizes.request)} of headers and the callback answers with ${kilobytes(answer)}`
  if (passed.length === 0) return headers.ok(`${message}, which nginx, Apache and HAProxy take as they are.`)
  const proxies = [...new Set(passed.map(({ proxy }) => proxy))]
  const remedies = proxies.map(name => {
    const ways = passed.filter(({ proxy }) => proxy === name).map(({ remedy }) => remedy)
    return `${name}: ${ways.join(', ')}`
  })
  return headers.warning(
    `${message}, more than ${proxies.join(' and ')} ${proxies.length === 1 ? 'takes' : 'take'} by default.`,
    `If it stands in front, set for ${remedies.join('; ')}.`
  )
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`
}

/** Rounded, since the real tokens differ by as much. */
function thousands(characters: number): string {
  return (Math.round(characters / 100) * 100).toLocaleString('en')
}
