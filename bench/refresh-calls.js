/**
 * Makes the two provider calls of a dual refresh and runs its four Redis scripts, and does nothing else. The calls use got with
 * the options of the server, and the scripts use the server's own Redis client. There is no encryption, and no request of a
 * browser, except for the Koa application that does the same for each request.
 */
import { randomBytes } from 'node:crypto'
import got from 'got'
import Koa from 'koa'
import { parseRedisUrl } from '../dist/config/redis-url.js'
import { createAgents } from '../dist/provider/agents.js'
import { openRedisClient } from '../dist/sessions/redis-client.js'
import { listen, tokenObject } from './candidates/common.js'
import { answerParent } from './processes.js'
import { openCells } from './session-cells.js'
import { createSession, createSessions } from './sessions.js'
import { CLIENT_ID, INTERNAL_SCOPES, PUBLIC_SCOPES } from './settings.js'
import { usage } from './usage.js'

const SESSIONS = 1000
// A session of 2 kB has about this length when it is encrypted.
const SEALED_LENGTH = 2900
const IDLE_SOCKET_MS = 4000
const DAY_MS = 86_400_000

const sealed = randomBytes(SEALED_LENGTH).toString('base64url').slice(0, SEALED_LENGTH)
const session = createSession(2000)
/** The revision of each session in Redis. */
const revisions = new Map()
let tokenRequest
let cells

answerParent({
  /** @param {{ providerUrl: string, redisUrl: string, secret: string }} given */
  async start({ providerUrl, redisUrl, secret }) {
    tokenRequest = createTokenRequest(providerUrl, secret)
    cells = await open(redisUrl)
    for (let index = 0; index < SESSIONS; index++) await signIn(newId())
    const setCookie = `${createSessions(secret).cookie(session)}; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax`
    const app = new Koa()
    app.use(async ctx => {
      await refresh(true)
      ctx.set('Set-Cookie', setCookie)
      ctx.body = tokenObject(session)
    })
    return `http://127.0.0.1:${await listen(app.callback())}`
  },
  /** Does this for `amount` refreshes, some of them at the same time. */
  async run({ amount, connections, withRedis }) {
    let left = amount
    async function refreshOneAfterAnother() {
      while (left-- > 0) await refresh(withRedis)
    }
    await Promise.all(Array.from({ length: connections }, refreshOneAfterAnother))
  },
  usage
})

function createTokenRequest(providerUrl, secret) {
  const agents = createAgents(IDLE_SOCKET_MS, () => undefined)
  const client = got.extend({
    retry: { limit: 0 },
    followRedirect: false,
    throwHttpErrors: false,
    decompress: false,
    responseType: 'text',
    headers: { accept: 'application/json', 'user-agent': 'bench' }
  })
  const url = `${providerUrl}/token`
  const authorization = `Basic ${Buffer.from(`${CLIENT_ID}:${secret}`).toString('base64')}`
  return async function tokenRequest(refreshToken, scopes) {
    const form = { grant_type: 'refresh_token', refresh_token: refreshToken, scope: scopes.join(' ') }
    const agent = await agents.for(url)
    const { body } = await client(url, { method: 'POST', agent, headers: { authorization }, form })
    return JSON.parse(body)
  }
}

async function open(redisUrl) {
  const client = await new Promise((resolve, reject) => {
    const opened = openRedisClient(parseRedisUrl(redisUrl), {
      channels: ['bench'],
      onReady: () => resolve(opened),
      onLost() {},
      onError: reject,
      onMessage() {}
    })
  })
  let writes = 0
  return openCells(client.commands, {
    nameOf: ({ id }) => id,
    lifetimeMs: () => 2 * DAY_MS,
    sealEntry: ({ entry }) => JSON.stringify([++writes, entry]),
    sealRecord: ({ entry, record }, previous) => {
      if (!entry.hasRecord) return ''
      return record === previous?.record ? undefined : sealed
    },
    open: entry => ({ entry: JSON.parse(entry)[1] })
  })
}

async function signIn(id) {
  await store(id, 0)
  revisions.set(id, 1)
}

async function refresh(withRedis) {
  if (!withRedis) {
    await tokenRequest(session.refresh_token, INTERNAL_SCOPES)
    await tokenRequest(session.refresh_token, PUBLIC_SCOPES)
    return
  }
  const [[id, rev]] = revisions
  // No other refresh gets this session meanwhile.
  revisions.delete(id)
  const { refresh_token } = await store(id, rev, () => tokenRequest(session.refresh_token, INTERNAL_SCOPES))
  await store(id, rev + 1, () => tokenRequest(refresh_token, PUBLIC_SCOPES))
  revisions.set(id, rev + 2)
}

/** Acquires the lease, calls the provider, and stores the next revision. */
async function store(id, rev, call = () => undefined) {
  const owner = newId()
  await cells.acquire(id, rev, owner)
  const answer = await call()
  await cells.commit(id, rev, owner, {})
  return answer
}

function newId() {
  return randomBytes(16).toString('base64url')
}
