// Each rule of OpenID Connect Back-Channel Logout section 2.6 is broken once, and the keys of the provider change.
import { createHmac, generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from 'node:crypto'
import test from 'ava'
import { createLogoutTokenCheck, UnusableLogoutTokenError } from '#src/provider/logout-token.js'
import { ProviderError, UnknownKeyError } from '#src/provider/provider-error.js'
import { createClock } from '../helpers/clock.js'
import { createDeferred } from '../helpers/deferred.js'
import { eventually } from '../helpers/eventually.js'
import { jwtPart } from '../helpers/jwt.js'
import { metadataWith } from '../helpers/metadata.js'

const ISSUER = 'https://idp.example/tenant'
const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const START_MS = 1_700_000_000_000
const SECONDS = START_MS / 1000

const usual = {
  iss: ISSUER,
  aud: 'our-client',
  iat: SECONDS,
  exp: SECONDS + 120,
  jti: 'token-1',
  sid: 'login-1',
  sub: 'ada',
  events: { [EVENT]: {} }
}

interface Key {
  readonly kid: string | undefined
  readonly privateKey: KeyObject
  readonly jwk: Readonly<Record<string, unknown>>
}

// Only the public key is exported, and only once, because on Node 20 an export as JWK can wait for ever.
function createKey(kid: string | undefined, kind: 'ec' | 'rsa' | 'ed25519' = 'ec'): Key {
  const encoding = { publicKeyEncoding: { format: 'jwk' }, privateKeyEncoding: undefined }
  const options = { namedCurve: 'P-256', modulusLength: 2048, ...encoding }
  const generate = generateKeyPairSync as object as (
    kind: string,
    options: object
  ) => { privateKey: KeyObject; publicKey: JsonWebKey }
  const { privateKey, publicKey } = generate(kind, options)
  return { kid, privateKey, jwk: { ...publicKey, use: 'sig', ...(kid !== undefined && { kid }) } }
}

function signed(claims: object, { kid, privateKey }: Key, header: object = {}): string {
  const head = { alg: 'ES256', kid, typ: 'logout+jwt', ...header }
  const unsigned = `${jwtPart(head)}.${jwtPart(claims)}`
  const { alg } = head
  const key = alg.startsWith('PS') ? { key: privateKey, padding: 6, saltLength: 32 } : privateKey
  const options = alg.startsWith('ES') ? { key: privateKey, dsaEncoding: 'ieee-p1363' as const } : key
  const signature = sign(alg === 'EdDSA' ? null : 'sha256', Buffer.from(unsigned), options)
  return `${unsigned}.${signature.toString('base64url')}`
}

const ours = createKey('key-1')

function setUp(keys: readonly Key[] = [ours]) {
  const clock = createClock(START_MS)
  const provider = {
    keys,
    requests: 0,
    discoveries: 0,
    failure: undefined as ProviderError | undefined,
    discoveryFailure: undefined as ProviderError | undefined,
    /** If this is set, a request for keys waits for it. */
    answer: undefined as Promise<readonly Key[]> | undefined
  }
  const idp = {
    async metadata() {
      provider.discoveries++
      if (provider.discoveryFailure) throw provider.discoveryFailure
      return metadataWith({ issuer: ISSUER })
    },
    async signingKeys() {
      provider.requests++
      if (provider.failure) throw provider.failure
      const current = await (provider.answer ?? provider.keys)
      return { keys: current.map(({ jwk }) => jwk) }
    }
  }
  const check = createLogoutTokenCheck({ idp, clientId: 'our-client', clock })
  const reasonOf = (token: string) =>
    check(token).then(
      () => undefined,
      (error: unknown) => (error instanceof UnusableLogoutTokenError ? error.reason : String(error))
    )
  return { clock, provider, check, reasonOf }
}

test('a correct logout token is accepted, and its claims are returned', async t => {
  const { check } = setUp()
  const { iss, sid, sub, jti, iat } = usual
  t.deepEqual(await check(signed(usual, ours)), { iss, sid, sub, jti, iat })
})

const accepted: readonly (readonly [what: string, changes: object, header?: object])[] = [
  ['with a sid and without a sub', { sub: undefined }],
  ['with a sub and without a sid', { sid: undefined }],
  ['without exp, because iat limits its age (Hydra, authentik),', { exp: undefined }],
  ['with several audiences', { aud: ['another', 'our-client'] }],
  ['that was issued on a clock that is 5 minutes ahead', { iat: SECONDS + 300 }],
  ['that has expired on a clock that is 5 minutes behind', { exp: SECONDS - 300 }],
  ['that becomes valid on a clock that is 5 minutes ahead', { nbf: SECONDS + 300 }],
  ['without a type', {}, { typ: undefined }],
  ['with the type JWT', {}, { typ: 'JWT' }],
  ['with more members in events', { events: { [EVENT]: {}, 'https://other.example/event': {} } }],
  ['with claims that this server does not know', { toe: SECONDS }]
]
for (const [what, changes, header] of accepted) {
  test(`a logout token ${what} is accepted`, async t => {
    t.is(await setUp().reasonOf(signed({ ...usual, ...changes }, ours, header)), undefined)
  })
}

const broken: readonly (readonly [what: string, reason: string, changes: object])[] = [
  ['another iss', 'iss', { iss: 'https://idp.example/other' }],
  ['an iss that is a list', 'iss', { iss: [ISSUER] }],
  ['an aud without this client', 'aud', { aud: ['another', 'our-client-2'] }],
  ['an iat that is a text', 'iat', { iat: String(SECONDS) }],
  ['an iat in the future', 'iat', { iat: SECONDS + 301 }],
  ['an iat that is older than ten minutes', 'iat', { iat: SECONDS - 601 }],
  ['neither iat nor exp', 'iat', { iat: undefined, exp: undefined }],
  ['an exp that is a text', 'exp', { exp: String(SECONDS + 120) }],
  ['an exp in the past', 'exp', { exp: SECONDS - 301 }],
  ['an nbf in the future', 'nbf', { nbf: SECONDS + 301 }],
  ['an nbf that is a text', 'nbf', { nbf: String(SECONDS) }],
  ['an empty jti', 'jti', { jti: '' }],
  ['a jti that is a number', 'jti', { jti: 7 }],
  ['neither sid nor sub', 'subject', { sid: undefined, sub: undefined }],
  ['a sid that is no text', 'subject', { sid: 7 }],
  ['a sub that is null', 'subject', { sub: null }],
  ['events that are a list', 'events', { events: [EVENT] }],
  ['events without the logout', 'events', { events: { 'https://other.example/event': {} } }],
  ['a logout event that is no object', 'events', { events: { [EVENT]: true } }],
  ['a nonce of null', 'nonce', { nonce: null }]
]
for (const [what, reason, changes] of broken) {
  test(`a logout token with ${what} is rejected, without a request for keys`, async t => {
    const { reasonOf, provider } = setUp()
    t.is(await reasonOf(signed({ ...usual, ...changes }, ours)), reason)
    t.is(provider.requests, 0)
  })
}

test('a logout token is rejected if its signature is not of a key of the provider', async t => {
  const { reasonOf } = setUp()
  const good = signed(usual, ours)
  const [head, claims, signature] = good.split('.') as [string, string, string]
  t.is(await reasonOf(signed(usual, { ...createKey('key-1') })), 'signature')
  t.is(await reasonOf(`${head}.${jwtPart({ ...usual, sub: 'eve' })}.${signature}`), 'signature')
  t.is(await reasonOf(`${jwtPart({ alg: 'ES256', kid: 'key-1' })}.${claims}.${signature}`), 'signature')
  t.is(await setUp().reasonOf(signed(usual, createKey('key-2'))), 'unknown_key')
})

test('a logout token that names an unusable key of the provider is rejected', async t => {
  const jwks: readonly Readonly<Record<string, unknown>>[] = [
    { kty: 'RSA', n: 'AQAB', e: 'AQAB' },
    { kty: 'RSA' },
    { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' },
    { kty: 'OKP', crv: 'Ed25519', x: 'AA' }
  ]
  const keys = jwks.map((jwk, n) => ({ ...ours, jwk: { ...jwk, kid: `unusable-${n}` } }))
  const { reasonOf } = setUp([ours, ...keys])
  for (const [n, alg] of ['RS256', 'RS256', 'ES256', 'EdDSA'].entries()) {
    const token = `${jwtPart({ alg, kid: `unusable-${n}` })}.${jwtPart(usual)}.${Buffer.alloc(64).toString('base64url')}`
    t.is(await reasonOf(token), 'unknown_key', alg)
  }
  t.is(await reasonOf(signed(usual, ours)), undefined)
})

test('a logout token is rejected with the algorithm none or HMAC, and with another type', async t => {
  const { reasonOf } = setUp()
  for (const alg of ['none', 'None', 'HS256', 'RSA-OAEP', undefined, 7]) {
    const unsigned = `${jwtPart({ alg, kid: 'key-1', typ: 'logout+jwt' })}.${jwtPart(usual)}`
    const hmac = createHmac('sha256', JSON.stringify(ours.jwk)).update(unsigned).digest('base64url')
    for (const signature of ['', hmac]) t.is(await reasonOf(`${unsigned}.${signature}`), 'alg', String(alg))
  }
  for (const typ of ['at+jwt', 'secevent+jwt', '', 7, null])
    t.is(await reasonOf(signed(usual, ours, { typ })), 'typ', String(typ))
})

test('a text that is no signed JWT is rejected', async t => {
  const { reasonOf } = setUp()
  const good = signed(usual, ours)
  for (const text of ['', 'a', 'a.b', 'a.b.c', `${good}.x`, `${good}.x.y`, '..', `${jwtPart([])}.${jwtPart(usual)}.x`])
    t.is(await reasonOf(text), 'malformed', text)
  t.is(await reasonOf(`${good}=`), 'malformed')
  t.is(await reasonOf(signed(usual, ours, { crit: ['b64'], b64: false })), 'malformed')
})

for (const [kind, alg] of [
  ['rsa', 'RS256'],
  ['rsa', 'PS256'],
  ['ed25519', 'EdDSA']
] as const) {
  test(`a logout token that was signed with ${alg} is accepted`, async t => {
    const key = createKey('other', kind)
    t.is(await setUp([ours, key]).reasonOf(signed(usual, key, { alg })), undefined)
  })
}

test('a logout token without kid is checked with every key that fits', async t => {
  const [one, two, other] = [createKey(undefined), createKey(undefined), createKey(undefined)]
  const { reasonOf } = setUp([one, two])
  t.is(await reasonOf(signed(usual, two)), undefined)
  t.is(await setUp([one, two]).reasonOf(signed(usual, other)), 'signature')
})

test('the keys are requested once, and again when they are ten minutes old', async t => {
  const { reasonOf, provider, clock } = setUp()
  await Promise.all(Array.from({ length: 20 }, () => reasonOf(signed(usual, ours))))
  t.is(provider.requests, 1)
  clock.advanceSeconds(599)
  t.is(await reasonOf(signed(usual, ours)), 'exp')
  const later = { ...usual, iat: SECONDS + 599, exp: SECONDS + 700 }
  t.is(await reasonOf(signed(later, ours)), undefined)
  t.is(provider.requests, 1)
  clock.advanceSeconds(1)
  provider.keys = []
  t.is(await reasonOf(signed(later, ours)), 'unknown_key', 'a withdrawn key is not accepted')
  t.is(provider.requests, 2)
})

const LATER =
  'UnknownKeyError: the key of a token is unknown, and the keys of the identity provider were requested too recently'

test('a new key of the provider is found, and many unknown keys cause one request in 30 seconds', async t => {
  const { reasonOf, provider, clock } = setUp()
  t.is(await reasonOf(signed(usual, ours)), undefined)
  const next = createKey('key-2')
  provider.keys = [next, ours]
  clock.advanceSeconds(30)
  t.is(await reasonOf(signed(usual, next)), undefined)
  t.is(provider.requests, 2)
  for (let n = 0; n < 50; n++) t.is(await reasonOf(signed(usual, ours, { kid: `forged-${n}` })), LATER)
  t.is(provider.requests, 2)
  clock.advanceSeconds(30)
  const forged = Array.from({ length: 50 }, (_, n) => reasonOf(signed(usual, ours, { kid: `forged-${n}` })))
  t.deepEqual([...new Set(await Promise.all(forged))], ['unknown_key'])
  t.is(provider.requests, 3)
})

test('a token with a key that the provider began to use after the last request for keys can be sent again later', async t => {
  const { check, reasonOf, provider, clock } = setUp()
  t.is(await reasonOf(signed(usual, ours)), undefined)
  const next = createKey('key-2')
  provider.keys = [next, ours]
  clock.advanceSeconds(10)
  const error = await t.throwsAsync(check(signed(usual, next)), { instanceOf: UnknownKeyError })
  t.is(error?.retryAfterSeconds, 20)
  clock.advanceSeconds(19.5)
  t.is((await t.throwsAsync(check(signed(usual, next)), { instanceOf: UnknownKeyError }))?.retryAfterSeconds, 1)
  t.is(provider.requests, 1)
  clock.advanceSeconds(0.5)
  t.is(await reasonOf(signed(usual, next)), undefined)
  t.is(provider.requests, 2)
})

test('a token that arrives during a request for keys is not rejected because of keys that are older than the token', async t => {
  const { reasonOf, provider, clock } = setUp()
  const next = createKey('key-2')
  const [answer, respondWith] = createDeferred<readonly Key[]>()
  provider.answer = answer
  const earlier = reasonOf(signed(usual, ours))
  await eventually(() => provider.requests === 1)
  const token = reasonOf(signed(usual, next))
  respondWith([ours])
  t.is(await earlier, undefined)
  t.is(await token, LATER)
  provider.answer = undefined
  provider.keys = [next, ours]
  clock.advanceSeconds(30)
  t.is(await reasonOf(signed(usual, next)), undefined)
})

test('a new key without kid is found', async t => {
  const [old, next] = [createKey(undefined), createKey(undefined)]
  const { reasonOf, provider, clock } = setUp([old])
  t.is(await reasonOf(signed(usual, old)), undefined)
  provider.keys = [next]
  t.is(await reasonOf(signed(usual, next)), LATER)
  clock.advanceSeconds(30)
  t.is(await reasonOf(signed(usual, next)), undefined)
  t.is(await reasonOf(signed(usual, old)), LATER)
  clock.advanceSeconds(30)
  t.is(await reasonOf(signed(usual, old)), 'signature')
})

test('while discovery fails, logout tokens cause one request in 5 seconds', async t => {
  const { check, reasonOf, provider, clock } = setUp()
  provider.discoveryFailure = new ProviderError('discovery', 'invalid_response', 'it responded with 500')
  const rejected = () => t.throwsAsync(check(signed(usual, ours)), { is: provider.discoveryFailure })
  await Promise.all(Array.from({ length: 10 }, rejected))
  for (const [seconds, discoveries] of [[0, 1] as const, [4.9, 1] as const, [0.1, 2] as const]) {
    clock.advanceSeconds(seconds)
    await rejected()
    t.is(provider.discoveries, discoveries)
  }
  t.is(provider.requests, 0)
  provider.discoveryFailure = undefined
  clock.advanceSeconds(5)
  t.is(await reasonOf(signed(usual, ours)), undefined)
})

test('while the keys cannot be read, one request is sent in 30 seconds, and known keys stay in use', async t => {
  const { check, reasonOf, provider, clock } = setUp()
  const failure = new ProviderError('jwks', 'timeout', 'no complete response in time')
  provider.failure = failure
  for (let second = 0; second < 30; second++) {
    await t.throwsAsync(check(signed(usual, ours)), { is: failure })
    t.is(provider.requests, 1)
    clock.advanceSeconds(1)
  }
  provider.failure = undefined
  t.is(await reasonOf(signed(usual, ours)), undefined)
  t.is(provider.requests, 2)
  clock.advanceSeconds(30)
  provider.failure = failure
  await t.throwsAsync(check(signed(usual, ours, { kid: 'forged' })), { is: failure })
  t.is(await reasonOf(signed(usual, ours)), undefined)
  t.is(provider.requests, 3)
})
