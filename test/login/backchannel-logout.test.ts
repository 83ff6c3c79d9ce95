// A logout token can be sent again after a failure, even if Redis fails between the steps of its logout.
import test, { type ExecutionContext } from 'ava'
import type { JSONWebKeySet } from 'jose'
import { noMetrics } from '#src/base/metrics.js'
import { createBackchannelLogout } from '#src/login/backchannel-logout.js'
import { StoreUnavailableError } from '#src/sessions/cells.js'
import { createClock } from '../helpers/clock.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { metadataWith } from '../helpers/metadata.js'

const log = { debug() {}, info() {}, warn() {}, error() {} }

async function setUp(t: ExecutionContext) {
  const clock = createClock()
  const provider = await createHostileIdp(t, { now: clock.now })
  const { issuer, clientId } = provider
  const jwksUri = `${issuer}/jwks`
  const token = provider.logoutToken({ sub: 'ada' })
  const redis = { isAway: false }
  const usedTokens = new Set<string>()
  const backchannelLogout = createBackchannelLogout({
    idp: {
      metadata: async () => metadataWith({ issuer, jwksUri }),
      signingKeys: async () => (await (await fetch(jwksUri)).json()) as JSONWebKeySet
    },
    clientId,
    clock,
    metrics: noMetrics,
    userSessions: {
      isUsed: async tokenId => usedTokens.has(tokenId),
      markUsed: async tokenId => void usedTokens.add(tokenId)
    },
    async endSessions() {
      if (redis.isAway) throw new StoreUnavailableError('redis')
      return 1
    }
  })
  return { clock, redis, logOut: () => backchannelLogout(token, log) }
}

test('a logout token can be sent again if its logouts could not be stored', async t => {
  const { clock, redis, logOut } = await setUp(t)
  redis.isAway = true
  await t.throwsAsync(logOut(), { instanceOf: StoreUnavailableError })
  redis.isAway = false
  clock.advanceSeconds(10)
  t.true(await logOut(), 'the sessions end at the second attempt')
  clock.advanceSeconds(100)
  t.false(await logOut(), 'a token that has ended sessions is not accepted again')
})
