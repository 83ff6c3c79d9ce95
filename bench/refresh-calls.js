/**
 * Makes the two provider calls of a dual refresh and runs its three Redis scripts, and does nothing else. The calls use got with
 * the options of the server, and the scripts use the server's own Redis client. There is no encryption, and no request of a
 * browser, except for the Koa application that does the same for each request.
 */
import { randomBytes } from 'node:crypto'
import got from 'got'
import Koa from 'koa'
import { parseRedisAddress } from '../dist/config/redis-address.js'
import { createAgents } from '../dist/provider/agents.js'
import { openRedisClient } from '../dist/store/redis-client.js'
import { createRedisScripts } from '../dist/store/redis-scripts.js'
import { LOCK_MS } from '../dist/store/scripts.js'
import { listen, tokenObject } from './candidates/common.js'
import { answerParent } from './processes.js'
import { createSession, createSessions } from './sessions.js'
import { CLIENT_ID, INTERNAL_SCOPES, PUBLIC_SCOPES } from './settings.js'
import { usage } from './usage.js'

const SESSIONS = 1000
// A session of 2 kB has about this length when it is encrypted.
const SEALED_LENGTH = 2900
const IDLE_SOCKET_MS = 4000
const DAY_MS = 86_400_000
const TIMES = { entryMs: 2 * DAY_MS, loginMs: 900_000, keepMs: 60_000, lockMs: LOCK_MS, settleMs: 2000 }

const sealed = randomBytes(SEALED_LENGTH).toString('base64url').slice(0, SEALED_LENGTH)
const session = createSession(2000)
/** The revision of each session in Redis. */
const revisions = new Map()
let tokenRequest
let scripts

answerParent({
  /** @param {{ providerUrl: string, redisUrl: string, secret: string }} given */
  async start({ providerUrl, redisUrl, secret }) {
    tokenRequest = createTokenRequest(providerUrl, secret)
    scripts = await openScripts(redisUrl)
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

async function openScripts(redisUrl) {
  const client = await new Promise((resolve, reject) => {
    const opened = openRedisClient(parseRedisAddress(redisUrl), {
      channels: ['bench'],
      onReady: () => resolve(opened),
      onLost() {},
      onError: reject,
      onMessage() {}
    })
  })
  const withoutEncryption = { seal: () => sealed, open: () => undefined }
  return createRedisScripts(command => command(client.commands), 'bench:', withoutEncryption, TIMES)
}

async function signIn(id) {
  await take(id, 0, 'login')
  await save(id, 1, 'login', false)
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
  const owner = newId()
  await take(id, rev, owner)
  const { refresh_token } = await tokenRequest(session.refresh_token, INTERNAL_SCOPES)
  await save(id, rev + 1, owner, true)
  await tokenRequest(refresh_token, PUBLIC_SCOPES)
  await save(id, rev + 2, owner, false)
  revisions.set(id, rev + 2)
}

async function take(id, rev, owner) {
  const taken = await scripts.take(id, { rev, owner, reported: undefined, newLoss: newId() })
  if (taken.kind !== 'mine') throw new Error(`take answered ${taken.kind}`)
}

async function save(id, rev, owner, keepsLock) {
  const outcome = { kind: 'tokens', record: {}, keepsLock, pauseMs: 0 }
  const saved = await scripts.save(id, { rev, owner, outcome, newLoss: newId() })
  if (saved.kind !== 'saved') throw new Error(`save answered ${saved.kind}`)
}

function newId() {
  return randomBytes(16).toString('base64url')
}
