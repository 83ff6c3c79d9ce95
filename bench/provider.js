/** A stand-in identity provider that responds at once, so that the measurements show only the server. It is also the API. */
import http from 'node:http'
import { Readable } from 'node:stream'
import { claimsOf, discovery, idToken, jwks } from './openid.js'
import { answerParent } from './processes.js'
import { randomToken } from './sessions.js'
import { PROXIED_PATH, PUBLIC_SCOPES } from './settings.js'

const USER = 'ada'
// The code of a login that began at `/authorize`. The nonce of the login follows it.
const SIGNED_IN = 'signed-in.'
const BYTES_PATH = `${PROXIED_PATH}/bytes-`

// The server rejects a public token that is also the internal token.
const [internalToken, publicToken] = [randomToken(900), randomToken(900)]
let issued = 0

// A missing scope means that the requested scope was granted (RFC 6749 section 5.1), so one response fits all requests.
function tokens(issuer, form) {
  issued++
  const code = form.get('code') ?? ''
  return {
    token_type: 'Bearer',
    access_token: form.get('scope') === PUBLIC_SCOPES.join(' ') ? publicToken : internalToken,
    refresh_token: `rotated-${issued}`.padEnd(42, '-'),
    expires_in: 3599,
    ...(code.startsWith(SIGNED_IN) && { id_token: idToken(issuer, USER, code.slice(SIGNED_IN.length)) })
  }
}

/** Signs the browser in without a page, and sends it back. */
function authorize({ searchParams: query }, response) {
  const location = new URL(query.get('redirect_uri'))
  location.searchParams.set('code', SIGNED_IN + (query.get('nonce') ?? ''))
  location.searchParams.set('state', query.get('state'))
  response.writeHead(302, { Location: location.href }).end()
}

const PART = Buffer.alloc(64 * 1024, 'x')

function* partsOf(bytes) {
  for (let sent = 0; sent < bytes; sent += PART.length) yield PART.subarray(0, bytes - sent)
}

const server = http.createServer(async (request, response) => {
  const answer = body => response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  const issuer = `http://${request.headers.host}`
  const { url } = request
  if (url === '/token') {
    const body = Buffer.concat(await request.toArray()).toString()
    answer(tokens(issuer, new URLSearchParams(body)))
  } else if (url === '/userinfo') answer(claimsOf(USER))
  else if (url === '/.well-known/openid-configuration') answer(discovery(issuer))
  else if (url === '/jwks') answer(jwks)
  else if (url.startsWith('/authorize?')) authorize(new URL(url, issuer), response)
  else if (url.startsWith(BYTES_PATH)) {
    const bytes = Number(url.slice(BYTES_PATH.length))
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': bytes })
    if (bytes <= PART.length) response.end(PART.subarray(0, bytes))
    else Readable.from(partsOf(bytes)).pipe(response)
  } else response.writeHead(404).end()
})
server.keepAliveTimeout = 60_000

answerParent({
  start: () =>
    new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`))),
  /** Returns the number of token responses. */
  issued: () => issued
})
