/**
 * Compares this server with oauth2-proxy and mod_auth_openidc: CPU time and memory for authenticated requests, forward-auth,
 * static files, proxied requests and refreshes. All sessions come from a login at the stand-in provider.
 */
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { FORWARD_AUTH_PATH, TOKEN_PATH } from './candidates/common.js'
import { get, HEADERS } from './get.js'
import { freePort } from './ports.js'
import { LOAD_CORE, SERVER_CORE, startProcess } from './processes.js'
import { redisProgram } from './redis-program.js'
import { usageOf } from './redis-usage.js'
import { median } from './report.js'
import { FILE_BYTES, FILE_NAME, PROXIED_PATH } from './scenarios.js'
import { PUBLIC_SCOPES } from './settings.js'
import { signIn } from './sign-in.js'
import { inTurn } from './throughput.js'
import { startUnits } from './units.js'

const MEBIBYTE = 2 ** 20
const PROXIED_BYTES = 2048
const LIFETIME_SECONDS = 3599
// The programs are compiled, and Node compiles its code while it runs. A short warm-up would be unfair to Node.
const LONG_WARM_UP_SECONDS = 3
// A session is refreshed again when its tokens have expired. With this many sessions in turn, that is the case.
const SHORT_LIFETIME_SECONDS = 0.5
const SESSIONS = 2000
// More sessions than this server caches, so that every cookie must be decrypted.
const MANY_SESSIONS = 2000
// Several sessions, because requests of one session share a refresh.
const SESSIONS_OF_PROGRAM = 100
const SIGN_INS_AT_ONCE = 4
// oauth2-proxy refreshes a session that is older than `--cookie-refresh`.
const UNTIL_DUE_MS = 1500
// A few requests may get the tokens that another request has just refreshed.
const LEAST_REFRESHES = 0.9
const APACHE_MODULES = '/usr/lib/apache2/modules'

const OURS = 'platform-auth-server'
const PROGRAMS = ['oauth2-proxy', 'mod-auth-openidc']

/**
 * @typedef {object} PerCoreRow
 * @property {string} kind
 * @property {string} name
 * @property {string} [missing] the reason why this server cannot do it, instead of figures
 * @property {number} [cpuMicros] CPU time of the server for one request
 * @property {number} [redisMicros] CPU time of Redis for one request
 * @property {number} [mebibytes] memory of the server after the requests
 * @property {number} [calls] of the token endpoint for one request
 *
 * @typedef {object} Case
 * @property {string} name
 * @property {string} [missing]
 * @property {Record<string, string | undefined>} [settings] of this server
 * @property {{ flags?: string[], directives?: string }} [options] of a program
 * @property {boolean} [usesForwardAuth]
 * @property {string} [path]
 * @property {number} [status]
 *
 * @typedef {object} Kind
 * @property {string} kind
 * @property {(body: string) => boolean} isRight
 * @property {boolean} [refreshes]
 * @property {(parts: { providerUrl: string }) => Case[]} cases
 */

const SINGLE = {
  PLATFORM_AUTH_MODE: 'single',
  INTERNAL_TOKEN_SCOPES: undefined,
  PUBLIC_TOKEN_SCOPES: undefined,
  PLATFORM_SCOPES: PUBLIC_SCOPES.join(' ')
}
const IN_REDIS = { PLATFORM_AUTH_SESSION_STORE: 'redis' }
const COOKIE = `${OURS}, session in the cookie`
const STORED = `${OURS}, session in Redis`

/** @type {Kind[]} */
const KINDS = [
  {
    kind: 'authenticated request',
    isRight: body => Object.keys(JSON.parse(body)).length > 0,
    cases: () => [
      { name: COOKIE, path: TOKEN_PATH },
      { name: STORED, path: TOKEN_PATH, settings: IN_REDIS },
      { name: 'oauth2-proxy', path: '/oauth2/userinfo' },
      {
        name: 'mod-auth-openidc',
        path: '/callback?info=json',
        options: { directives: 'OIDCInfoHook access_token access_token_expires userinfo' }
      }
    ]
  },
  {
    kind: 'forward-auth',
    isRight: body => body.length < 100,
    cases: () => [
      { name: COOKIE, path: FORWARD_AUTH_PATH, usesForwardAuth: true },
      { name: STORED, path: FORWARD_AUTH_PATH, usesForwardAuth: true, settings: IN_REDIS },
      { name: 'oauth2-proxy', path: FORWARD_AUTH_PATH, status: 202 },
      { name: 'mod-auth-openidc', path: FORWARD_AUTH_PATH }
    ]
  },
  {
    kind: 'static file of 10 kB',
    isRight: body => body.length === FILE_BYTES,
    cases: () => [
      { name: `${OURS}, behind a login`, missing: 'not possible, because files are public' },
      { name: `${OURS}, without a login`, path: `/${FILE_NAME}` },
      ...PROGRAMS.map(name => ({ name, path: `/${FILE_NAME}` }))
    ]
  },
  {
    kind: 'proxied request of 2 kB',
    isRight: body => body.length === PROXIED_BYTES,
    cases({ providerUrl }) {
      const path = `${PROXIED_PATH}/bytes-${PROXIED_BYTES}`
      const settings = { PLATFORM_AUTH_API_PROXY_RULES: `GET ${PROXIED_PATH}/* ${providerUrl}${PROXIED_PATH}/*` }
      return [
        { name: COOKIE, path, settings },
        { name: STORED, path, settings: { ...settings, ...IN_REDIS } },
        {
          name: 'oauth2-proxy',
          path,
          options: { flags: [`--upstream=${providerUrl}${PROXIED_PATH}/`, '--pass-access-token'] }
        },
        {
          name: 'mod-auth-openidc',
          path,
          options: {
            directives: `${loadModule('proxy')}\n${loadModule('proxy_http')}
ProxyPass ${PROXIED_PATH} ${providerUrl}${PROXIED_PATH}`
          }
        }
      ]
    }
  },
  {
    kind: 'refresh, asked by forward-auth',
    refreshes: true,
    isRight: body => body.length < 100,
    cases: () => [
      { name: `${COOKIE}, single mode`, path: FORWARD_AUTH_PATH, usesForwardAuth: true, settings: SINGLE },
      { name: `${COOKIE}, dual mode`, path: FORWARD_AUTH_PATH, usesForwardAuth: true },
      {
        name: `${STORED}, single mode`,
        path: FORWARD_AUTH_PATH,
        usesForwardAuth: true,
        settings: { ...SINGLE, ...IN_REDIS }
      },
      { name: `${STORED}, dual mode`, path: FORWARD_AUTH_PATH, usesForwardAuth: true, settings: IN_REDIS },
      { name: 'oauth2-proxy', path: FORWARD_AUTH_PATH, status: 202, options: { flags: ['--cookie-refresh=1s'] } },
      {
        name: 'mod-auth-openidc',
        path: FORWARD_AUTH_PATH,
        // Every access token expires sooner than this, so each request refreshes it.
        options: {
          directives: `<Location />\n  OIDCRefreshAccessTokenBeforeExpiry ${LIFETIME_SECONDS + 1}\n</Location>`
        }
      }
    ]
  }
]

function loadModule(name) {
  return `LoadModule ${name}_module ${APACHE_MODULES}/mod_${name}.so`
}

/**
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 * @returns {Promise<PerCoreRow[]>}
 */
export async function measurePerCore(around, options) {
  const rows = []
  for (const kind of KINDS) rows.push(...(await measureKind(kind, around, options)))
  return rows
}

async function measureKind(kind, around, options) {
  const cases = kind.cases(around).map(given => ({ ...given, missing: given.missing ?? missingHere(given) }))
  const running = []
  try {
    for (const given of cases) if (!given.missing) running.push(await prepare(kind, given, around))
    const { connections, seconds, rounds } = options
    for (const one of running) await one.load({ connections, seconds: LONG_WARM_UP_SECONDS })
    const results = new Map(running.map(one => [one.name, []]))
    for (let round = 0; round < rounds; round++) {
      for (const one of inTurn(running, round)) results.get(one.name).push(await one.load({ connections, seconds }))
    }
    return cases.map(({ name, missing }) => ({
      kind: kind.kind,
      name,
      ...(missing ? { missing } : medians(results.get(name)))
    }))
  } finally {
    await Promise.all(running.map(one => one.stop()))
    await around.provider.ask('tokenLifetime', LIFETIME_SECONDS)
  }

  function missingHere({ name, settings = {} }) {
    if (PROGRAMS.includes(name) && !options.peers) return 'not measured without `--peers`'
    if (around.skipped.has(name)) return 'not installed'
    return settings.PLATFORM_AUTH_SESSION_STORE === 'redis' && !redisProgram ? 'no Redis is installed' : undefined
  }
}

function medians(results) {
  const [first] = results
  return Object.fromEntries(
    Object.keys(first)
      .filter(name => first[name] !== undefined)
      .map(name => [name, median(results.map(result => result[name]))])
  )
}

/** Starts a server, signs in, checks one response, and returns a function that measures it. */
async function prepare(kind, given, around) {
  const { name, path, status = 200 } = given
  const server = PROGRAMS.includes(name) ? await startProgram(given, around) : await startOurs(given, around)
  try {
    const isShort = kind.refreshes && !PROGRAMS.includes(name)
    await around.provider.ask('tokenLifetime', isShort ? SHORT_LIFETIME_SECONDS : LIFETIME_SECONDS)
    const cookies = []
    const sessions = kind.refreshes ? (isShort ? SESSIONS : SESSIONS_OF_PROGRAM) : MANY_SESSIONS
    while (cookies.length < sessions) {
      cookies.push(...(await Promise.all(Array.from({ length: SIGN_INS_AT_ONCE }, () => server.signIn()))))
    }
    if (kind.refreshes) await setTimeout(UNTIL_DUE_MS)
    const headers = { ...HEADERS, cookie: cookies[0] }
    const url = server.url + path
    const answer = await get({ url, headers })
    if (answer.status !== status || !kind.isRight(answer.body)) {
      throw new Error(`${name} answered ${path} with ${answer.status} ${answer.body.slice(0, 200)}`)
    }
    const fresh = { what: 'cookies', cookies, secret: server.secret }
    return {
      name,
      stop: server.stop,
      async load({ connections, seconds }) {
        await around.provider.ask('tokenLifetime', isShort ? SHORT_LIFETIME_SECONDS : LIFETIME_SECONDS)
        const before = await server.read()
        const callsBefore = await around.provider.ask('issued')
        const { requests } = await around.load.ask('run', { url, headers, status, connections, seconds, fresh })
        const after = await server.read()
        const calls = ((await around.provider.ask('issued')) - callsBefore) / requests
        if (kind.refreshes && calls < LEAST_REFRESHES * callsOf(given)) {
          throw new Error(
            `${name}: only ${calls.toFixed(2)} token calls for each request, so not every request was a refresh`
          )
        }
        return {
          cpuMicros: (after.cpuMicros - before.cpuMicros) / requests,
          redisMicros:
            after.redisMicros === undefined ? undefined : (after.redisMicros - before.redisMicros) / requests,
          mebibytes: after.residentBytes / MEBIBYTE,
          calls
        }
      }
    }
  } catch (error) {
    await server.stop()
    throw error
  }
}

/** Returns the token calls of one refresh. */
function callsOf({ name, settings = {} }) {
  return PROGRAMS.includes(name) || settings.PLATFORM_AUTH_MODE === 'single' ? 1 : 2
}

async function startProgram({ name, options = {} }, { providerUrl, wwwroot }) {
  const process = startProcess('serve.js', SERVER_CORE, [name])
  const secret = crypto.randomUUID()
  const port = await process.ask('start', { secret, providerUrl, wwwroot, ...options })
  return {
    url: `http://127.0.0.1:${port}`,
    secret,
    signIn: () => process.ask('cookie'),
    read: () => process.ask('usage'),
    stop: () => process.stop()
  }
}

/** Starts this server with its command line, and a Redis if its sessions are there. */
async function startOurs({ settings = {}, usesForwardAuth }, around) {
  const isStored = settings.PLATFORM_AUTH_SESSION_STORE === 'redis'
  const redis = isStored ? startProcess('redis.js', LOAD_CORE, [redisProgram]) : undefined
  const REDIS_URL = await redis?.ask('start')
  const admin = REDIS_URL && new Redis(REDIS_URL)
  const forwardAuthPort = usesForwardAuth ? String(await freePort()) : undefined
  const environment = { ...settings, REDIS_URL, PLATFORM_AUTH_FORWARD_AUTH_PORT: forwardAuthPort }
  const { units, secret, stop } = await startUnits([environment], SERVER_CORE, around)
  const [{ url, process }] = units
  return {
    url: forwardAuthPort ? `http://127.0.0.1:${forwardAuthPort}` : url,
    secret,
    signIn: () => signIn(url, secret),
    async read() {
      const usage = await process.ask('usage')
      return admin ? { ...usage, redisMicros: (await usageOf(admin)).cpuMicros } : usage
    },
    async stop() {
      await stop()
      admin?.disconnect()
      await redis?.stop()
    }
  }
}
