// A logout token can be sent again after a failure, even if Redis fails between the steps of its logout.
import { generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from 'node:crypto'
import test from 'ava'
import { createBackChannelLogout } from '#src/login/back-channel-logout.js'
import { APS } from '#src/provider/metadata.js'
import { quirksOf } from '#src/provider/quirks.js'
import { createKeyring } from '#src/session/keyring.js'
import { createMemoryIndexScripts } from '#src/store/index-scripts.js'
import { createSessionIndex } from '#src/store/session-index.js'
import { StoreUnavailableError } from '#src/store/unavailable.js'
import { createClock } from '../helpers/clock.js'

const ISSUER = 'https://idp.example'
const START_MS = 1_700_000_000_000
const log = { debug() {}, info() {}, warn() {}, error() {} }

function createToken() {
  const generate = generateKeyPairSync as object as (
    kind: string,
    options: object
  ) => { privateKey: KeyObject; publicKey: JsonWebKey }
  const encoding = { publicKeyEncoding: { format: 'jwk' }, privateKeyEncoding: undefined }
  const { privateKey, publicKey } = generate('ec', { namedCurve: 'P-256', ...encoding })
  const iat = START_MS / 1000
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  const claims = { iss: ISSUER, aud: 'our-client', iat, exp: iat + 120, jti: 'token-1', sub: 'ada', events }
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const unsigned = `${part({ alg: 'ES256', typ: 'logout+jwt' })}.${part(claims)}`
  const signature = sign('sha256', Buffer.from(unsigned), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return { token: `${unsigned}.${signature.toString('base64url')}`, keys: [{ ...publicKey }] }
}

function setUp() {
  const clock = createClock(START_MS)
  const { token, keys } = createToken()
  const redis = { isAway: false }
  const scripts = createMemoryIndexScripts(clock.now, { entryMs: 172_800_000, loginMs: 900_000 })
  const index = createSessionIndex(scripts, createKeyring(['a secret for the index of this test']))
  const metadata = {
    ...APS,
    issuer: ISSUER,
    jwksUri: `${ISSUER}/jwks`,
    issParameterSupported: false,
    scopesSupported: undefined,
    quirks: quirksOf({})
  }
  const whenAvailable = <T>(work: () => Promise<T>): Promise<T> =>
    redis.isAway ? Promise.reject(new StoreUnavailableError('store')) : work()
  const backChannelLogout = createBackChannelLogout({
    idp: { metadata: async () => metadata, signingKeys: async () => ({ keys }) },
    clientId: 'our-client',
    clock,
    store: {
      claim: (tokenId, lifetimeMs) => whenAvailable(() => index.claim(tokenId, lifetimeMs)),
      keepClaim: (tokenId, lifetimeMs) => whenAvailable(() => index.keepClaim(tokenId, lifetimeMs)).catch(() => {}),
      release: tokenId => whenAvailable(() => index.release(tokenId)).catch(() => {})
    },
    endSessions: () => whenAvailable(async () => 1)
  })
  return { clock, redis, logOut: () => backChannelLogout(token, log), index }
}

test('a logout token can be sent again if Redis failed after it had been claimed', async t => {
  const { clock, redis, logOut, index } = setUp()
  const { claim } = index
  index.claim = async (...args) => {
    const isFirst = await claim(...args)
    redis.isAway = true
    return isFirst
  }
  await t.throwsAsync(logOut(), { instanceOf: StoreUnavailableError })
  redis.isAway = false
  index.claim = claim
  clock.advanceSeconds(10)
  t.true(await logOut(), 'the sessions end at the second attempt')
  clock.advanceSeconds(100)
  t.false(await logOut(), 'a token that has ended sessions is not accepted again')
})
