// A logout token can be sent again after a failure, even if Redis fails between the steps of its logout.
import { generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from 'node:crypto'
import test from 'ava'
import { createBackChannelLogout } from '#src/login/back-channel-logout.js'
import { APS } from '#src/provider/metadata.js'
import { quirksOf } from '#src/provider/quirks.js'
import { StoreUnavailableError } from '#src/store/cells.js'
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
  const usedTokens = new Set<string>()
  const metadata = {
    ...APS,
    issuer: ISSUER,
    jwksUri: `${ISSUER}/jwks`,
    issParameterSupported: false,
    scopesSupported: undefined,
    quirks: quirksOf({})
  }
  const backChannelLogout = createBackChannelLogout({
    idp: { metadata: async () => metadata, signingKeys: async () => ({ keys }) },
    clientId: 'our-client',
    clock,
    userSessions: {
      isUsed: async tokenId => usedTokens.has(tokenId),
      markUsed: async tokenId => void usedTokens.add(tokenId)
    },
    async endSessions() {
      if (redis.isAway) throw new StoreUnavailableError('redis')
      return 1
    }
  })
  return { clock, redis, logOut: () => backChannelLogout(token, log) }
}

test('a logout token can be sent again if its logouts could not be stored', async t => {
  const { clock, redis, logOut } = setUp()
  redis.isAway = true
  await t.throwsAsync(logOut(), { instanceOf: StoreUnavailableError })
  redis.isAway = false
  clock.advanceSeconds(10)
  t.true(await logOut(), 'the sessions end at the second attempt')
  clock.advanceSeconds(100)
  t.false(await logOut(), 'a token that has ended sessions is not accepted again')
})
