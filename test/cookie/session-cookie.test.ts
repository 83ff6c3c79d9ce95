import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { deflateSync } from 'node:zlib'
import test from 'ava'
import fc from 'fast-check'
import { createKeyring, type Keyring } from '#src/cookie/keyring.js'
import type { SessionRecord } from '#src/cookie/record.js'
import { splitIntoChunks } from '#src/cookie/request-cookies.js'
import {
  createSessionCookie,
  requireStorable,
  type SessionCookie,
  SessionTooLargeError
} from '#src/cookie/session-cookie.js'
import { anyText } from '../helpers/any-text.js'
import { type Clock, createClock } from '../helpers/clock.js'

const SECRET = 'the secret of these session tests, long'
const OTHER_SECRET = 'another secret of these session tests'
const NAME = 'platform_session'
const PURPOSE = 'session cookie'
const MAX_AGE_MS = 86_400_000

interface Options {
  readonly keyring?: Keyring
  readonly name?: string
  readonly purpose?: string
  readonly maxLifetimeSeconds?: number
  readonly clock?: Clock
}

function setUp(options: Options = {}) {
  const { keyring = createKeyring([SECRET]), name = NAME, purpose = PURPOSE, clock = createClock() } = options
  const sealer = keyring.sealer(purpose)
  const ages = { inactivityTimeoutSeconds: MAX_AGE_MS / 1000, maxLifetimeSeconds: options.maxLifetimeSeconds }
  const cookie = createSessionCookie({ sealer, name, ...ages, now: clock.now })
  const header = (chunks: readonly (string | undefined)[]) =>
    chunks.flatMap((chunk, index) => (chunk === undefined ? [] : [`${cookie.names[index]}=${chunk}`])).join('; ')
  const headerOf = (content: string) => `${NAME}=1${sealer.seal(Buffer.from(content, 'latin1'), NAME)}`
  const reopen = (record: SessionRecord) => header(cookie.seal(record))
  return { ...cookie, cookie, clock, sealer, header, headerOf, reopen }
}

/** Random text of base64url characters. Like a JWT, deflate makes it smaller by a quarter at most. */
function tokenOf(length: number): string {
  return randomBytes(length).toString('base64url').slice(0, length)
}

function recordOf(given: Partial<SessionRecord['fields']>): SessionRecord {
  const fields = { refresh_token: 'r', expires_at: 1_700_003_599_000, ...given }
  return {
    kind: 'complete',
    id: 'a random id',
    rev: 3,
    loggedInAt: 1_699_999_000_000,
    issuedAt: 1_700_000_000_000,
    fields
  }
}

const dual = recordOf({
  public_token: tokenOf(900),
  internal_token: tokenOf(1000),
  refresh_token: tokenOf(42)
})

const sealable: readonly (readonly [what: string, record: SessionRecord, cookies: readonly number[]])[] = [
  ['with two tokens of usual size', dual, [1]],
  ['with one token', recordOf({ token: 't', refresh_token: 'r', expires_at: 1 }), [1]],
  ['of 9 kB', recordOf({ public_token: tokenOf(4400), internal_token: tokenOf(4600) }), [2, 3, 4]],
  ['of 7 kB that can be compressed', recordOf({ token: 'data:read:urn '.repeat(500) }), [1]]
]

for (const [what, record, cookies] of sealable) {
  test(`a session ${what} opens to exactly the session that was sealed, in ${cookies.join(' or ')} cookies`, t => {
    const { seal, open, header } = setUp()
    const chunks = seal(record)
    t.true(cookies.includes(chunks.length), `${chunks.length} cookies`)
    t.deepEqual(open(header(chunks)), record)
  })
}

test('a session with two tokens of usual size is not compressed', t => {
  const { seal, sealer } = setUp()
  t.is(sealer.open(seal(dual).join('').slice(1), NAME)?.toString().charAt(0), '{')
})

const inRedis: SessionRecord = { ...dual, id: 'i'.repeat(22), key: 'k'.repeat(32) }

test('the cookie of a session in Redis has its id, key and revision, and no tokens', t => {
  const { open, reopen, seal } = setUp({ name: '__Host-platform_session' })
  t.deepEqual(open(reopen(inRedis)), { id: inRedis.id, rev: inRedis.rev, key: 'k'.repeat(32) })
  const large = { ...inRedis, fields: { ...inRedis.fields, token: tokenOf(100_000) } }
  const [chunk, ...more] = seal(large)
  t.deepEqual(more, [])
  t.true((chunk as string).length < 180)
})

test('the cookie of a session in Redis expires like other session cookies, also after a lower absolute limit', t => {
  const { open, reopen, clock } = setUp({ clock: createClock(inRedis.loggedInAt) })
  const header = reopen(inRedis)
  const lowered = setUp({ clock, maxLifetimeSeconds: 3600 })
  clock.advance(3_600_000)
  t.truthy(lowered.open(header))
  clock.advance(1)
  t.is(lowered.open(header), undefined)
  t.truthy(open(header))
  clock.advance(MAX_AGE_MS)
  t.is(open(header), undefined)
})

test('a session that is larger than 256 kB is not stored in Redis, and the error has its sizes', t => {
  const storable = { ...inRedis, fields: { ...inRedis.fields, token: 'a'.repeat(250_000) } }
  t.notThrows(() => requireStorable(storable))
  const tooLarge = { ...inRedis, fields: { ...inRedis.fields, token: 'a'.repeat(262_144) } }
  const error = t.throws(() => requireStorable(tooLarge), { instanceOf: SessionTooLargeError })
  t.is(error.sizes.token, 262_144)
  t.regex(error.message, /too large for Redis: \d+ bytes, but at most 262144/)
})

test('sealed content is accepted as a session only if it is whole, which that of an earlier version is not', t => {
  const { open, headerOf, clock } = setUp()
  const issued = clock.now()
  const fields = { refresh_token: 'r', expires_at: 1 }
  const whole = { ...fields, _id: 'id', _rev: 1, _login: issued, _issued: issued, _expire: issued + MAX_AGE_MS }
  const session = { kind: 'complete', id: 'id', rev: 1, loggedInAt: issued, issuedAt: issued, fields } as const
  t.deepEqual(open(headerOf(JSON.stringify(whole))), session)
  const changes = [
    { refresh_token: undefined },
    { refresh_token: 1 },
    { expires_at: undefined },
    { expires_at: '1' },
    { _rev: undefined },
    { _login: undefined },
    { _expire: undefined },
    { _expire: 'never' },
    { _expire: issued - 1 }
  ]
  const changed = changes.map(change => JSON.stringify({ ...whole, ...change }))
  const others = ['', 'null', '{}', '[]', '"text"', '5', '{"refresh_token":"r"}', '{"_expire":', 'x\x9c', '\0']
  for (const content of [...changed, ...others]) t.is(open(headerOf(content)), undefined, content)
})

test('any session either opens to the same session after sealing or is rejected as too large', t => {
  const { cookie, header } = setUp()
  const token = fc.oneof(
    anyText({ maxLength: 4000 }),
    fc.tuple(fc.string({ maxLength: 9 }), fc.nat(20_000)).map(([text, times]) => text.repeat(times))
  )
  const tokens = { token, public_token: token, refresh_token: token, expires_at: fc.nat() }
  const fields = fc.record(tokens, { requiredKeys: ['refresh_token', 'expires_at'], noNullPrototype: true })
  const text = fc.string()
  const identity = fc.record(
    { iss: text, sub: text, name: text, idToken: token },
    { requiredKeys: ['iss', 'sub'], noNullPrototype: true }
  )
  const always = { id: text, rev: fc.nat(), loggedInAt: fc.nat(), issuedAt: fc.nat(), fields }
  const required = ['kind', 'id', 'rev', 'loggedInAt', 'issuedAt', 'fields'] as const
  const complete = fc.record(
    {
      kind: fc.constant('complete' as const),
      ...always,
      identity,
      listedAt: fc.nat(),
      isAllowedByIdToken: fc.constant(true as const),
      isUnchecked: fc.constant(true as const)
    },
    { requiredKeys: [...required], noNullPrototype: true }
  )
  const halfRefreshed = fc.record(
    { kind: fc.constant('half-refreshed' as const), ...always, internalExpiresAt: fc.nat(), identity },
    { requiredKeys: [...required, 'internalExpiresAt'], noNullPrototype: true }
  )
  const records: fc.Arbitrary<SessionRecord> = fc.oneof(complete, halfRefreshed)
  fc.assert(
    fc.property(records, record => {
      try {
        return isDeepStrictEqual(cookie.open(header(cookie.seal(record))), record)
      } catch (error) {
        return error instanceof SessionTooLargeError
      }
    })
  )
  t.pass()
})

test('a session too large for four cookies is rejected with an error that has the sizes and no token', t => {
  const { seal } = setUp()
  const record = recordOf({ public_token: tokenOf(9000), internal_token: tokenOf(8000), refresh_token: tokenOf(42) })
  const error = t.throws(() => seal(record), { instanceOf: SessionTooLargeError })
  t.like(error.sizes, { public_token: 9000, internal_token: 8000, refresh_token: 42 })
  t.true((error.sizes.sealed as number) > 15_199)
  const said = `${error.message} ${error.stack} ${JSON.stringify(error)} ${JSON.stringify(error.sizes)}`
  for (const token of [record.fields.public_token, record.fields.internal_token, record.fields.refresh_token]) {
    t.false(said.includes((token as string).slice(0, 16)))
  }
})

test('a session that is larger than the limit for decompression is rejected, even if it compresses well', t => {
  const { seal } = setUp()
  const error = t.throws(() => seal(recordOf({ token: 'a'.repeat(70_000) })), { instanceOf: SessionTooLargeError })
  t.is(error.sizes.token, 70_000)
  t.true((error.sizes.content as number) > 70_000)
})

test('sealed content that decompresses to more than the limit is not accepted as a session', t => {
  const { open, sealer, header } = setUp()
  const deflated = (size: number) => {
    const fields = { token: 'a'.repeat(size), refresh_token: 'r', expires_at: 1 }
    const json = JSON.stringify({ ...fields, _id: 'id', _rev: 1, _login: 1, _issued: 1, _expire: 1e15 })
    return header(splitIntoChunks(sealer.seal(deflateSync(Buffer.from(json)), NAME)))
  }
  t.is((open(deflated(60_000)) as SessionRecord).fields.token?.length, 60_000)
  t.is(open(deflated(70_000)), undefined)
  t.is(open(deflated(10_000_000)), undefined)
})

test('a session cookie opens for exactly 24 hours after it was sealed, also if it is cached, and sealing it again starts a new period', t => {
  const { open, reopen, clock } = setUp()
  const [cached, other] = [reopen(dual), reopen(dual)]
  openOften(open, cached)
  clock.advance(MAX_AGE_MS)
  for (const header of [cached, other]) t.deepEqual(open(header), dual)
  const again = reopen(dual)
  clock.advance(1)
  for (const header of [cached, other]) t.is(open(header), undefined)
  clock.advance(MAX_AGE_MS - 1)
  t.deepEqual(open(again), dual)
})

const ABSOLUTE_SECONDS = 3 * 86_400

test('a session ends at its absolute maximum age after the login, even if it is sealed again', t => {
  const { open, reopen, lifetimeMs, clock } = setUp({ maxLifetimeSeconds: ABSOLUTE_SECONDS })
  const record = { ...dual, loggedInAt: clock.now() }
  for (const _day of [1, 2]) {
    t.is(lifetimeMs(record), MAX_AGE_MS)
    clock.advance(MAX_AGE_MS - 3_600_000)
    t.deepEqual(open(reopen(record)), record)
  }
  clock.advance(MAX_AGE_MS)
  const last = reopen(record)
  t.is(lifetimeMs(record), 2 * 3_600_000)
  clock.advance(2 * 3_600_000)
  t.deepEqual(open(last), record)
  t.deepEqual(open(reopen(record)), record)
  clock.advance(1)
  t.is(open(last), undefined)
  t.is(
    open(reopen(record)),
    undefined,
    'a session past its absolute maximum age does not open, even if it is sealed again'
  )
  t.is(lifetimeMs(record), 0)
})

test('an absolute maximum age that is configured later also applies to existing sessions, cached or not', t => {
  const before = setUp()
  const record = { ...dual, loggedInAt: before.clock.now() }
  const header = before.reopen(record)
  const after = setUp({ maxLifetimeSeconds: 3600, clock: before.clock })
  openOften(after.open, header)
  before.clock.advance(3_600_000)
  t.deepEqual(after.open(header), record)
  before.clock.advance(1)
  t.is(after.open(header), undefined)
  t.deepEqual(before.open(header), record, 'without the setting the session still opens')
})

test('the cookie contains no readable part of the session', t => {
  const { seal } = setUp()
  const raw = Buffer.from(seal(dual).join('').slice(1), 'base64url').toString('latin1')
  for (const value of [...Object.values(dual.fields), dual.id, 'refresh_token']) t.false(raw.includes(String(value)))
})

/** Opens a cookie as often as needed to cache its session in memory. A cached session must not make similar cookies valid. */
function openOften(open: SessionCookie['open'], header: string) {
  for (const _time of [1, 2, 3, 4]) {
    if (open(header) === undefined) throw new Error('the session does not open')
  }
}

test('a cookie with any changed character does not open, even if the original is cached', t => {
  const { seal, open, header } = setUp()
  const chunk = seal(recordOf({ token: 'token', refresh_token: 'refresh' }))[0] as string
  openOften(open, header([chunk]))
  for (let index = 0; index < chunk.length; index++) {
    for (const other of ['A', '-', '1', '2', '=', '%', '"']) {
      if (other === chunk[index]) continue
      t.is(open(header([chunk.slice(0, index) + other + chunk.slice(index + 1)])), undefined, `${other} at ${index}`)
    }
    t.is(open(header([chunk.slice(0, index)])), undefined, `cut at ${index}`)
  }
})

test('a session in several cookies opens only if all cookies are complete and in order', t => {
  const { seal, open, header } = setUp()
  const chunks = seal(recordOf({ token: tokenOf(13_000) }))
  t.is(chunks.length, 4)
  openOften(open, header(chunks))
  for (const index of chunks.keys()) {
    const chunk = chunks[index] as string
    const middle = chunk.length >> 1
    const flipped = chunk.slice(0, middle) + (chunk[middle] === 'A' ? 'B' : 'A') + chunk.slice(middle + 1)
    t.is(open(header(chunks.with(index, flipped))), undefined, `chunk ${index} changed`)
    t.is(open(header(chunks.with(index, chunk.slice(0, -1)))), undefined, `chunk ${index} cut`)
    t.is(open(header(chunks.map((other, at) => (at === index ? undefined : other)))), undefined, `${index} missing`)
    for (const other of chunks.keys()) {
      if (other === index) continue
      const swapped = chunks.with(index, chunks[other] as string).with(other, chunk)
      t.is(open(header(swapped)), undefined, `chunks ${index} and ${other} swapped`)
    }
  }
})

test('a mixture of the chunks of two sealed sessions does not open', t => {
  const { seal, open, header } = setUp()
  const record = recordOf({ token: tokenOf(9000) })
  const [one, two] = [seal(record), seal(record)]
  t.is(one.length, two.length)
  for (const whole of [one, two]) openOften(open, header(whole))
  for (let mix = 1; mix < 2 ** one.length - 1; mix++) {
    const mixed = one.map((chunk, index) => ((mix >> index) & 1 ? two[index] : chunk))
    t.is(open(header(mixed)), undefined, `mix ${mix.toString(2)}`)
  }
})

test('a session that was sealed for another cookie name, purpose or secret does not open', t => {
  const { seal, open, header } = setUp()
  const chunks = seal(dual)
  t.deepEqual(open(header(chunks)), dual)
  const renamed = setUp({ name: `__Host-${NAME}` })
  t.is(renamed.open(renamed.header(chunks)), undefined)
  t.is(setUp({ purpose: 'session cookie, other mode' }).open(header(chunks)), undefined)
  t.is(setUp({ keyring: createKeyring([OTHER_SECRET]) }).open(header(chunks)), undefined)
})

function rotate(keyring: Keyring, secrets: readonly string[], { forgetOpened }: { forgetOpened(): void }) {
  keyring.replace(secrets)
  forgetOpened()
}

test('sessions sealed with an old secret open until the secret is removed, and new sessions are sealed with the new secret', t => {
  const keyring = createKeyring([SECRET])
  const { open, reopen, cookie } = setUp({ keyring })
  const old = reopen(dual)
  openOften(open, old)

  rotate(keyring, [OTHER_SECRET, SECRET], cookie)
  t.deepEqual(open(old), dual)
  const fresh = reopen(dual)
  t.deepEqual(setUp({ keyring: createKeyring([OTHER_SECRET]) }).open(fresh), dual)

  rotate(keyring, [OTHER_SECRET], cookie)
  t.is(open(old), undefined)
  t.deepEqual(open(fresh), dual)
})

test('each of 2,100 cookies opens to its own session', t => {
  const { open, reopen } = setUp()
  const records = Array.from({ length: 2100 }, (_, n) => recordOf({ token: `token ${n}`, expires_at: n }))
  const headers = records.map(reopen)
  for (const _round of [1, 2, 3, 4]) t.deepEqual(headers.map(open), records)
})

test('opening any Cookie header never throws, and only sealed sessions open', t => {
  const { open, sentNames, seal } = setUp()
  const ours = seal(dual)[0] as string
  const header = fc.oneof(
    anyText({ maxLength: 300 }),
    fc.array(fc.string({ maxLength: 40 }), { maxLength: 6 }).map(values => values.join('; ')),
    fc
      .array(fc.tuple(fc.constantFrom(NAME, `${NAME}.1`, `${NAME}.2`, `${NAME}.3`, 'x'), fc.string()), { maxLength: 6 })
      .map(pairs => pairs.map(([name, value]) => `${name}=${value}`).join(';')),
    // A real cookie in which a part is replaced by other text. Spaces after the whole cookie would not change it.
    fc.tuple(fc.nat(ours.length - 6), fc.string({ minLength: 1, maxLength: 5 })).map(([cut, text]) => {
      return `${NAME}=${ours.slice(0, cut)}${text}${ours.slice(cut + text.length + 1)}`
    })
  )
  fc.assert(
    fc.property(header, text => {
      sentNames(text)
      return open(text) === undefined
    }),
    { numRuns: 1000 }
  )
  t.pass()
})

test('sentNames() lists the session cookies that the browser sent, even if they cannot be opened', t => {
  const { sentNames, names } = setUp()
  t.deepEqual(names, [NAME, `${NAME}.1`, `${NAME}.2`, `${NAME}.3`])
  t.deepEqual(sentNames(''), [])
  t.deepEqual(sentNames(`${NAME}=garbage; ${NAME}.2=; ${NAME}_login=x; ${NAME}.4=y`), [NAME, `${NAME}.2`])
})

test('the sessions of 1,000 opened cookies are cached, and the oldest of them is evicted', t => {
  const sealer = createKeyring([SECRET]).sealer(PURPOSE)
  let opened = 0
  const counting = {
    ...sealer,
    open(sealed: string, context: string) {
      opened++
      return sealer.open(sealed, context)
    }
  }
  const { open, reopen } = setUp({ keyring: { ...createKeyring([SECRET]), sealer: () => counting } })
  const headers = Array.from({ length: 1001 }, (_, n) => reopen(recordOf({ refresh_token: `r${n}` })))
  // A session is cached when its cookie is opened for the second time.
  for (const header of headers) for (const _time of [1, 2]) open(header)
  const before = opened
  open(headers.at(-1) ?? '')
  t.is(opened, before, 'the newest session is cached')
  open(headers[0] ?? '')
  t.is(opened, before + 1, 'the oldest session was evicted')
})
