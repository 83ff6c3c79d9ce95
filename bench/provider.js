/** A stand-in identity provider that responds at once, so that the measurements show only the server. */
import http from 'node:http'
import { ALGORITHM, idToken, jwks } from './id-token.js'
import { answerParent } from './processes.js'
import { randomToken } from './sessions.js'
import { PUBLIC_SCOPES, USER_INFO } from './settings.js'

const JSON_TYPE = { 'Content-Type': 'application/json' }

function discovery(issuer) {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    id_token_signing_alg_values_supported: ['RS256', ALGORITHM],
    subject_types_supported: ['public']
  }
}

// The code of a login that began at `/authorize`. The nonce of the login follows it.
const SIGNED_IN = 'signed-in.'

/** The server rejects a public token that is also the internal token. */
let accessTokens = { internal: randomToken(900), public: randomToken(900) }
let issued = 0
let lifetimeSeconds = 3599

// A missing scope means that the requested scope was granted (RFC 6749 section 5.1), so one response fits all requests.
function tokens(issuer, form) {
  issued++
  const code = form.get('code') ?? ''
  return {
    token_type: 'Bearer',
    access_token: form.get('scope') === PUBLIC_SCOPES.join(' ') ? accessTokens.public : accessTokens.internal,
    refresh_token: `rotated-${issued}`.padEnd(42, '-'),
    expires_in: lifetimeSeconds,
    ...(code.startsWith(SIGNED_IN) && { id_token: idToken(issuer, code.slice(SIGNED_IN.length)) })
  }
}

/** Signs the browser in without a page, and sends it back. */
function authorize({ searchParams: query }, response) {
  const location = new URL(query.get('redirect_uri'))
  location.searchParams.set('code', SIGNED_IN + (query.get('nonce') ?? ''))
  location.searchParams.set('state', query.get('state'))
  response.writeHead(302, { Location: location.href }).end()
}

const server = http.createServer((request, response) => {
  const answer = body => response.writeHead(200, JSON_TYPE).end(JSON.stringify(body))
  const issuer = `http://${request.headers.host}`
  if (request.url === '/token') {
    let body = ''
    request.on('data', chunk => {
      body += chunk
    })
    request.on('end', () => answer(tokens(issuer, new URLSearchParams(body))))
  } else if (request.url === '/userinfo') {
    answer(USER_INFO)
  } else if (request.url === '/.well-known/openid-configuration') {
    answer(discovery(issuer))
  } else if (request.url === '/jwks') {
    answer(jwks)
  } else if (request.url.startsWith('/authorize?')) {
    authorize(new URL(request.url, issuer), response)
  } else if (request.url === '/proxied/count') {
    count(request, response)
  } else if (request.url.startsWith('/proxied/bytes-')) {
    sendBytes(response, Number(request.url.slice('/proxied/bytes-'.length)))
  } else {
    response.writeHead(404).end()
  }
})
const piece = Buffer.alloc(65_536, 'x')

/** An API behind the proxy. It returns as many bytes as the path says. */
function sendBytes(response, bytes) {
  response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': bytes })
  let left = bytes
  const more = () => {
    while (left > 0) {
      const chunk = left < piece.length ? piece.subarray(0, left) : piece
      left -= chunk.length
      if (!response.write(chunk)) return void response.once('drain', more)
    }
    response.end()
  }
  more()
}

/** Returns the number of bytes that it received. */
function count(request, response) {
  let bytes = 0
  request.on('data', chunk => {
    bytes += chunk.length
  })
  request.on('end', () => response.end(String(bytes)))
}

server.keepAliveTimeout = 60_000

answerParent({
  start: () =>
    new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`))),
  issued: () => issued,
  /** Sets the length of all later access tokens. */
  tokenLength(length) {
    accessTokens = { internal: randomToken(length), public: randomToken(length) }
  },
  /** Sets the lifetime of all later access tokens. */
  tokenLifetime(seconds) {
    lifetimeSeconds = seconds
  }
})
