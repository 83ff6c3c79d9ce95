/** The scenarios. Each has one request, which is repeated, and the candidates that support it. */
import { FORWARD_AUTH_PATH, PROXIED_PATH, TOKEN_PATH } from './settings.js'

/**
 * A server of a scenario: its name in the table, its file in `candidates/`, and for this server its settings.
 * @typedef {{ name: string, file: string, settings?: Record<string, unknown> }} Entrant
 *
 * @typedef {object} Scenario
 * @property {string} title
 * @property {string} path
 * @property {Record<string, number>} [statuses] the candidates that do not respond with 200
 * @property {Entrant[]} entrants the first one is the reference for the others
 * @property {Entrant[]} [peers] further ones with `--peers`
 * @property {boolean} [hasManySessions] true if requests have 10,000 sessions in turn, so that every cookie must be decrypted
 * @property {boolean} [usesRedis] true if the server has a Redis, whose CPU time is measured, too
 * @property {boolean} [usesOnlyServer] true if no candidate calls another server. The load generator then has its core to itself
 *   and never sleeps; see load.js
 * @property {(answer: { body: string }) => boolean} isRight
 */

export const SERVER = 'platform-auth-server'
export const FILE_NAME = 'viewer.js'
export const FILE_BYTES = 10_240
export const SESSION_BYTES = 2000
const PROXIED_BYTES = 2048

/** The peers that do not run on Node. They are installed first. */
export const PROGRAMS = ['oauth2-proxy', 'mod-auth-openidc']

const KOA = entrant('koa')
const OURS = entrant(SERVER)
const [TUTORIAL, FASTIFY] = ['express-tutorial', 'fastify-secure-session'].map(entrant)
const [OAUTH2_PROXY, MOD_AUTH_OPENIDC] = PROGRAMS.map(entrant)

/** @type {Record<string, Scenario>} */
export const scenarios = {
  token: {
    title: 'one active session of 2 kB in dual mode',
    path: TOKEN_PATH,
    entrants: [KOA, OURS],
    peers: [FASTIFY, TUTORIAL],
    usesOnlyServer: true,
    isRight: isToken
  },
  'token-many': {
    title: '10,000 active sessions in turn, so that every cookie must be decrypted',
    path: TOKEN_PATH,
    entrants: [KOA, OURS],
    hasManySessions: true,
    usesOnlyServer: true,
    isRight: isToken
  },
  'forward-auth': {
    title: 'a gateway asks whether it may forward a request, with one active session',
    path: FORWARD_AUTH_PATH,
    statuses: { 'oauth2-proxy': 202 },
    entrants: [KOA, { ...OURS, settings: { forwardAuth: {} } }],
    peers: [OAUTH2_PROXY],
    usesOnlyServer: true,
    isRight: ({ body }) => body.length < 100
  },
  static: {
    title: 'a file of 10 kB',
    path: `/${FILE_NAME}`,
    entrants: [entrant('koa-static'), OURS],
    peers: [TUTORIAL, OAUTH2_PROXY],
    usesOnlyServer: true,
    isRight: ({ body }) => body.length === FILE_BYTES
  },
  proxy: {
    title: 'a response of 2 kB through the proxy',
    path: `${PROXIED_PATH}/bytes-${PROXIED_BYTES}`,
    entrants: [entrant('undici-pass-through'), OURS],
    peers: [OAUTH2_PROXY, MOD_AUTH_OPENIDC],
    isRight: ({ body }) => body.length === PROXIED_BYTES
  },
  redis: {
    title: 'one active session, in the cookie and with `session.store: redis`, both with a Redis',
    path: TOKEN_PATH,
    entrants: [
      { ...OURS, name: 'session in the cookie' },
      { ...OURS, name: 'session in Redis', settings: { session: { store: 'redis' } } }
    ],
    usesRedis: true,
    isRight: isToken
  }
}

/** @returns {Entrant} */
function entrant(name) {
  return { name, file: name }
}

function isToken({ body }) {
  const { access_token, expires_in, ...others } = JSON.parse(body)
  return access_token.length > 500 && expires_in > 3500 && expires_in <= 3600 && Object.keys(others).length === 0
}
