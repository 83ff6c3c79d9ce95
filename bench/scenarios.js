/** The scenarios. Each has one request, which is repeated, and the candidates that support it. */
import { CALLBACK_PATH, FORWARD_AUTH_PATH, LOGIN_PATH, PROFILE_PATH, TOKEN_PATH } from './candidates/common.js'
import { DISPLAY_NAME } from './settings.js'

/**
 * @typedef {object} Scenario
 * @property {string} title
 * @property {string} path
 * @property {number} status the status of every response
 * @property {Record<string, number>} [statuses] the candidates that respond with another status
 * @property {string[]} candidates the first candidate is the reference for the others
 * @property {string[]} [peers] further candidates with `--peers`
 * @property {number} [sessionBytes] size of the session as JSON; without it no cookie is sent
 * @property {boolean} [isExpired] true if the session's tokens have expired
 * @property {'many' | 'expired' | 'callback'} [fresh] the way in which requests differ from each other; see load.js
 * @property {boolean} [isForWrk] true if wrk sends the requests where it is installed. autocannon reads large responses too slowly
 * @property {boolean} [usesOnlyServer] true if no candidate calls the provider. The load generator then has its core to itself and
 *   never sleeps; see load.js
 * @property {(answer: { body: string, headers: object, session: import('./sessions.js').Session }) => boolean} isRight
 */

export const SERVER = 'platform-auth-server'
export const FILE_NAME = 'viewer.js'
export const FILE_BYTES = 10_240
/** The proxy forwards this path to the stand-in provider, which answers `/proxied/bytes-N` with N bytes. */
export const PROXIED_PATH = '/proxied'
const SMALL_BYTES = 2048
const LARGE_BYTES = 10 * 2 ** 20

/** The peers that do not run on Node, with the work that each of them does for a request. */
export const PROGRAMS = {
  'oauth2-proxy':
    'decrypts the session in the cookie for every request, and checks its expiry and its email address. It sends files only to people who are signed in.',
  'mod-auth-openidc':
    'looks up the session in shared memory by the id in the cookie, checks its expiry, and sets request headers from its claims. It sends files only to people who are signed in, and answers `forward-auth` with a file of 22 bytes.'
}

const SESSIONLESS = ['koa', 'node-http', 'koa-sealed', SERVER]
const SESSION_PEERS = ['fastify-secure-session', 'iron-session', 'express-tutorial', 'express-openid-connect']

/** @type {Record<string, Scenario>} */
export const scenarios = {
  token: {
    title: 'one active session of 2 kB in dual mode, requested again and again',
    path: TOKEN_PATH,
    status: 200,
    candidates: SESSIONLESS,
    peers: SESSION_PEERS,
    sessionBytes: 2000,
    usesOnlyServer: true,
    isRight: isSessionsToken
  },
  'token-8k': {
    title: 'one active session of 8 kB in dual mode, in three cookies',
    path: TOKEN_PATH,
    status: 200,
    candidates: SESSIONLESS,
    // iron-session rejects a session that does not fit into one cookie.
    peers: SESSION_PEERS.filter(name => name !== 'iron-session'),
    sessionBytes: 8000,
    usesOnlyServer: true,
    isRight: isSessionsToken
  },
  'token-many': {
    title: '10,000 active sessions of 2 kB in dual mode, in turn, so that every cookie must be decrypted',
    path: TOKEN_PATH,
    status: 200,
    candidates: SESSIONLESS,
    sessionBytes: 2000,
    fresh: 'many',
    usesOnlyServer: true,
    isRight: isSessionsToken
  },
  anonymous: {
    title: 'no session',
    path: TOKEN_PATH,
    status: 401,
    candidates: SESSIONLESS,
    peers: SESSION_PEERS,
    usesOnlyServer: true,
    isRight: ({ body }) => body === '' || body === 'Unauthorized'
  },
  'forward-auth': {
    title: 'a gateway asks whether it may forward a request, with one active session',
    path: FORWARD_AUTH_PATH,
    status: 200,
    statuses: { 'oauth2-proxy': 202 },
    candidates: ['koa', 'platform-auth-server-forward-auth'],
    peers: Object.keys(PROGRAMS),
    sessionBytes: 2000,
    usesOnlyServer: true,
    isRight: ({ body }) => body.length < 100
  },
  profile: {
    title: 'one active session of 2 kB in dual mode, with a provider that responds at once',
    path: PROFILE_PATH,
    status: 200,
    candidates: ['koa', SERVER],
    peers: ['express-tutorial'],
    sessionBytes: 2000,
    isRight: ({ body }) => JSON.parse(body).name === DISPLAY_NAME
  },
  static: {
    title: 'a file of 10 kB',
    path: `/${FILE_NAME}`,
    status: 200,
    candidates: ['koa-static', SERVER],
    peers: ['express-tutorial', ...Object.keys(PROGRAMS)],
    sessionBytes: 2000,
    isForWrk: true,
    isRight: ({ body }) => body.length === FILE_BYTES
  },
  login: {
    title: 'redirect to the provider',
    path: LOGIN_PATH,
    status: 302,
    candidates: ['koa', SERVER],
    peers: ['express-tutorial', 'express-openid-connect'],
    usesOnlyServer: true,
    isRight: ({ headers }) => headers.location.includes('/authorize?')
  },
  refresh: {
    title: 'every session has expired and needs two calls of a provider that responds at once',
    path: TOKEN_PATH,
    status: 200,
    candidates: ['koa', SERVER],
    peers: ['express-tutorial'],
    sessionBytes: 2000,
    isExpired: true,
    fresh: 'expired',
    isRight: ({ body, headers }) => isLiveToken(JSON.parse(body)) && 'set-cookie' in headers
  },
  callback: {
    title: 'every login needs two calls of a provider that responds at once',
    path: CALLBACK_PATH,
    status: 302,
    candidates: ['koa', SERVER],
    peers: ['express-tutorial'],
    fresh: 'callback',
    isRight: ({ headers }) => headers.location === '/' && 'set-cookie' in headers
  },
  proxy: proxied('a response of 2 kB through the proxy', SMALL_BYTES),
  'proxy-10m': proxied('a response of 10 MiB through the proxy', LARGE_BYTES)
}

/** @returns {Scenario} */
function proxied(title, bytes) {
  return {
    title,
    path: `${PROXIED_PATH}/bytes-${bytes}`,
    status: 200,
    candidates: ['undici-pass-through', 'undici-request', SERVER],
    peers: ['koa-http-proxy-3', 'koa-httpxy'],
    sessionBytes: 2000,
    isRight: ({ body }) => body.length === bytes
  }
}

function isSessionsToken({ body, session }) {
  const token = JSON.parse(body)
  return Object.keys(token).length === 2 && token.access_token === session.public_token && isLiveToken(token)
}

function isLiveToken({ access_token, expires_in }) {
  return access_token.length > 500 && expires_in > 3500 && expires_in <= 3600
}
