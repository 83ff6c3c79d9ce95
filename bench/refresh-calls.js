/**
 * The work of a dual refresh that no server can avoid: two provider calls with got, and with Redis four scripts, one before and one
 * after each call, of which two send a session. There is no encryption, and no request of a browser.
 */
import { randomBytes } from 'node:crypto'
import http from 'node:http'
import got from 'got'
import { Redis } from 'ioredis'
import { answerParent } from './processes.js'
import { CLIENT_ID, INTERNAL_SCOPES, PUBLIC_SCOPES } from './settings.js'
import { usage } from './usage.js'

// A session of 2 kB has about this length when it is encrypted.
const SESSION = randomBytes(2200).toString('base64url').slice(0, 2900)
const ENTRY = 'e'.repeat(150)
const SCRIPT = "return redis.call('HSET', KEYS[1], 'e', ARGV[1], 'r', ARGV[2])"

let tokenRequest
let redis
let digest

answerParent({
  /** @param {import('./lineup.js').Around} around */
  async start({ providerUrl, redisUrl }) {
    tokenRequest = createTokenRequest(`${providerUrl}/token`)
    if (!redisUrl) return
    redis = new Redis(redisUrl)
    digest = await redis.script('LOAD', SCRIPT)
  },
  /** Does this for `amount` refreshes, some of them at the same time. */
  async run({ amount, connections, usesRedis }) {
    let left = amount
    async function refreshOneAfterAnother(_, user) {
      while (left-- > 0) await refresh(`bench:${user}`, usesRedis)
    }
    await Promise.all(Array.from({ length: connections }, refreshOneAfterAnother))
  },
  usage
})

function createTokenRequest(url) {
  // The options of the server.
  const client = got.extend({
    agent: { http: new http.Agent({ keepAlive: true }) },
    retry: { limit: 0 },
    followRedirect: false,
    throwHttpErrors: false,
    decompress: false,
    responseType: 'text',
    headers: { accept: 'application/json', 'user-agent': 'bench' }
  })
  const authorization = `Basic ${Buffer.from(`${CLIENT_ID}:bench`).toString('base64')}`
  return async function tokenRequest(scopes) {
    const form = { grant_type: 'refresh_token', refresh_token: 'r'.repeat(42), scope: scopes.join(' ') }
    const { body } = await client(url, { method: 'POST', headers: { authorization }, form })
    return JSON.parse(body)
  }
}

async function refresh(key, usesRedis) {
  for (const scopes of [INTERNAL_SCOPES, PUBLIC_SCOPES]) {
    if (usesRedis) await redis.evalsha(digest, 1, key, ENTRY, '')
    await tokenRequest(scopes)
    if (usesRedis) await redis.evalsha(digest, 1, key, ENTRY, SESSION)
  }
}
