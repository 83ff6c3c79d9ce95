import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { deflateSync } from 'node:zlib'
import test from 'ava'
import fc from 'fast-check'
import { createKeyring, type Sealer } from '#src/cookie/keyring.js'
import { splitIntoChunks } from '#src/cookie/request-cookies.js'
import { createSessionCookie, requireStorable, SessionTooLargeError } from '#src/cookie/session-cookie.js'
import type { SessionRecord } from '#src/cookie/session-record.js'
import { anyText } from '../helpers/any-text.js'
import { type Clock, createClock } from '../helpers/clock.js'

const SECRET = 'the secret of these session tests, long'
const OTHER_SECRET = 'another secret of these session tests'
const NAME = 'platform_session'
const PURPOSE = 'session cookie'
const MAX_AGE_MS = 86_400_000
const ISSUED_AT = 1_700_000_000_000

interface Options {
  readonly secrets?: Parameters<typeof createKeyring>[0]
  readonly name?: string
  readonly purpose?: string
  readonly inactivityTimeoutSeconds?: number
  readonly maxLifetimeSeconds?: number
  readonly clock?: Clock
}

function setUp(options: Options = {}) {
  const {
    secrets = [SECRET],
    name = NAME,
    purpose = PURPOSE,
    clock = createClock(ISSUED_AT),
    maxLifetimeSeconds
  } = options
  const { inactivityTimeoutSeconds = MAX_AGE_MS / 1000 } = options
  const keyring = createKeyring(secrets)
  const keyringSealer = keyring.sealer(purpose)
  let decryptions = 0
  const sealer: Sealer = {
    ...keyringSealer,
    open(...sealed) {
      decryptions++
      return keyringSealer.open(...sealed)
    }
  }
  const ages = { inactivityTimeoutSeconds, maxLifetimeSeconds }
  const cookie = createSessionCookie({ sealer, name, ...ages, now: clock.now })
  const header = (chunks: readonly (string | undefined)[]) =>
    chunks.flatMap((chunk, index) => (chunk === undefined ? [] : [`${cookie.names[index]}=${chunk}`])).join('; ')
  return {
    ...cookie,
    clock,
    sealer,
    header,
    decryptions: () => decryptions,
    /** Seals a session, and returns the header of a browser that has its cookies. */
    headerFor: (record: SessionRecord) => header(cookie.seal(record)),
    headerOf: (content: string) => `${NAME}=1${sealer.seal(Buffer.from(content, 'latin1'), NAME)}`,
    /** Opens a cookie as often as needed to cache its session. A cached session must not make similar cookies valid. */
    cache(header: string) {
      for (const _time of [1, 2, 3, 4]) if (!cookie.open(header)) throw new Error('the session does not open')
    },
    replaceSecrets(secrets: readonly string[]) {
      keyring.replace(secrets)
      cookie.forgetOpened()
    }
  }
}

/** Random text of base64url characters. Like a JWT, deflate makes it smaller by a quarter at most. */
function tokenOf(length: number): string {
  return randomBytes(length).toString('base64url').slice(0, length)
}

function recordOf(given: Partial<SessionRecord['fields']>): SessionRecord {
  const always = { kind: 'complete', id: 'a random id', rev: 3 } as const
  const times = { loggedInAt: 1_699_999_000_000, issuedAt: ISSUED_AT }
  return { ...always, ...times, fields: { refresh_token: 'r', expires_at: 1_700_003_599_000, ...given } }
}

const dual = recordOf({ public_token: tokenOf(900), internal_token: tokenOf(1000), refresh_token: tokenOf(42) })
const inRedis: SessionRecord = { ...dual, id: 'i'.repeat(22), key: 'k'.repeat(32) }

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
  t.is(sealer.open(seal(dual).join('').slice(1), NAME)?.toString().charAt(0), '[')
})

test('a session that is larger than 256 kB is not stored in Redis, and the error has its sizes', t => {
  const withToken = (length: number) => ({ ...inRedis, fields: { ...inRedis.fields, token: 'a'.repeat(length) } })
  t.notThrows(() => requireStorable(withToken(250_000)))
  const error = t.throws(() => requireStorable(withToken(262_144)), { instanceOf: SessionTooLargeError })
  t.is(error.sizes.token, 262_144)
  t.regex(error.message, /too large for Redis/)
})

test('sealed content is accepted as a session only if it is whole, which that of an earlier version is not', t => {
  const { open, headerOf, clock } = setUp()
  const issued = clock.now()
  const fields = { refresh_token: 'r', expires_at: 1 }
  const session = { kind: 'complete', id: 'id', rev: 1, loggedInAt: issued, issuedAt: issued, fields } as const
  const contentOf = (change: object, remaining: unknown = MAX_AGE_MS) =>
    JSON.stringify([issued, 0, remaining, { ...session, ...change }])
  t.deepEqual(open(headerOf(contentOf({}))), session)
  const changed = [
    ...[{ rev: undefined }, { fields: undefined }, { rev: '1' }].map(change => contentOf(change)),
    ...[{ expires_at: 1 }, { refresh_token: 'r' }, { refresh_token: 1, expires_at: 1 }].map(fields =>
      contentOf({ fields })
    ),
    ...['never', null, -1].map(remaining => contentOf({}, remaining)),
    JSON.stringify([issued, MAX_AGE_MS]),
    JSON.stringify([issued, 0, MAX_AGE_MS])
  ]
  const earlier = { ...fields, _id: 'id', _rev: 1, _login: issued, _issued: issued, _expire: issued + MAX_AGE_MS }
  const others = ['', 'null', '{}', '[]', '"text"', '5', JSON.stringify(earlier), '[1,', 'x\x9c', '\0']
  for (const content of [...changed, ...others]) t.is(open(headerOf(content)), undefined, content)
})

test('any session either opens to the same session after sealing or is rejected as too large', t => {
  // Longer than the time since the oldest of these sessions was issued.
  const { open, headerFor } = setUp({ inactivityTimeoutSeconds: ISSUED_AT })
  const token = fc.oneof(
    anyText({ maxLength: 4000 }),
    fc.tuple(fc.string({ maxLength: 9 }), fc.nat(20_000)).map(([text, times]) => text.repeat(times))
  )
  const tokens = { token, public_token: token, refresh_token: token, expires_at: fc.nat() }
  const text = fc.string()
  const plain = { noNullPrototype: true }
  const fields = fc.record(tokens, { requiredKeys: ['refresh_token', 'expires_at'], ...plain })
  const names = { iss: text, sub: text, name: text, idToken: token }
  const identity = fc.record(names, { requiredKeys: ['iss', 'sub'], ...plain })
  const always = { id: text, rev: fc.nat(), loggedInAt: fc.nat(), issuedAt: fc.nat(), fields }
  const required = ['kind', 'id', 'rev', 'loggedInAt', 'issuedAt', 'fields'] as const
  const yes = fc.constant(true as const)
  const ofComplete = { identity, listedAt: fc.nat(), isAllowedByIdToken: yes, isUnchecked: yes }
  const complete = fc.record(
    { kind: fc.constant('complete' as const), ...always, ...ofComplete },
    { requiredKeys: [...required], ...plain }
  )
  const halfRefreshed = fc.record(
    { kind: fc.constant('half-refreshed' as const), ...always, internalExpiresAt: fc.nat(), identity },
    { requiredKeys: [...required, 'internalExpiresAt'], ...plain }
  )
  const records: fc.Arbitrary<SessionRecord> = fc.oneof(complete, halfRefreshed)
  fc.assert(
    fc.property(records, record => {
      try {
        return isDeepStrictEqual(open(headerFor(record)), record)
      } catch (error) {
        return error instanceof SessionTooLargeError
      }
    })
  )
  t.pass()
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
    const session = { kind: 'complete', id: 'id', rev: 1, loggedInAt: 1, issuedAt: ISSUED_AT, fields }
    const json = JSON.stringify([1e15, 1, ISSUED_AT, session])
    return header(splitIntoChunks(sealer.seal(deflateSync(Buffer.from(json)), NAME)))
  }
  t.is((open(deflated(60_000)) as SessionRecord).fields.token?.length, 60_000)
  t.is(open(deflated(70_000)), undefined)
  t.is(open(deflated(10_000_000)), undefined)
})

for (const [where, record] of [
  ['in cookies', dual],
  ['in Redis', inRedis]
] as const) {
  test(`a cookie opens for exactly 24 hours, also if it is cached, and a refresh starts a new period (session ${where})`, t => {
    const { open, cache, headerFor, clock } = setUp()
    const [cached, other] = [headerFor(record), headerFor(record)]
    cache(cached)
    clock.advance(MAX_AGE_MS)
    for (const header of [cached, other]) t.is(open(header)?.id, record.id)
    const again = headerFor({ ...record, issuedAt: clock.now() })
    clock.advance(1)
    for (const header of [cached, other]) t.is(open(header), undefined)
    clock.advance(MAX_AGE_MS - 1)
    t.is(open(again)?.id, record.id)
  })

  test(`an absolute limit that is configured later also applies to existing cookies, cached or not (session ${where})`, t => {
    const { open, headerFor, clock } = setUp({ clock: createClock(record.loggedInAt) })
    const limited = setUp({ maxLifetimeSeconds: 3600, clock })
    const [cached, other] = [headerFor(record), headerFor(record)]
    limited.cache(cached)
    clock.advance(3_600_000)
    for (const header of [cached, other]) t.truthy(limited.open(header))
    clock.advance(1)
    for (const header of [cached, other]) t.is(limited.open(header), undefined)
    t.truthy(open(other), 'without the setting the session still opens')
  })
}

test('a session ends at its absolute maximum age after the login, even if it is refreshed', t => {
  const { open, headerFor, lifetimeMs, clock } = setUp({ maxLifetimeSeconds: 3 * 86_400 })
  const login = clock.now()
  const refreshed = () => ({ ...dual, loggedInAt: login, issuedAt: clock.now() })
  for (const _day of [1, 2]) {
    t.is(lifetimeMs(refreshed()), MAX_AGE_MS)
    const record = refreshed()
    clock.advance(MAX_AGE_MS - 3_600_000)
    t.deepEqual(open(headerFor(record)), record)
  }
  clock.advance(MAX_AGE_MS)
  const record = refreshed()
  const last = headerFor(record)
  t.is(lifetimeMs(record), 2 * 3_600_000)
  clock.advance(2 * 3_600_000)
  for (const header of [last, headerFor(record)]) t.deepEqual(open(header), record)
  clock.advance(1)
  for (const header of [last, headerFor(record)]) t.is(open(header), undefined)
  t.is(lifetimeMs(record), 0)
})

for (const [what, key] of [
  ['a session', undefined],
  ['a reference', 'the key']
] as const) {
  test(`${what} ends at the earlier of its sealed end and the configured one, counted from its last refresh or change`, t => {
    const before = setUp()
    const record = { ...dual, issuedAt: before.clock.now(), ...(key && { key }) }
    const changed = { ...record, changedAt: record.issuedAt + 1000 }
    const headers = { record: before.headerFor(record), changed: before.headerFor(changed) }
    const opens = (inactivityTimeoutSeconds: number, after: number, header: string) => {
      const { open, clock } = setUp({ inactivityTimeoutSeconds })
      clock.advance(after)
      return open(header) !== undefined
    }
    t.deepEqual([opens(3, 3000, headers.record), opens(3, 3001, headers.record)], [true, false], 'lowered')
    t.deepEqual([opens(3, 4000, headers.changed), opens(3, 4001, headers.changed)], [true, false], 'changed')
    const [raised, end] = [2 * 86_400, MAX_AGE_MS]
    t.deepEqual([opens(raised, end, headers.record), opens(raised, end + 1, headers.record)], [true, false], 'raised')
  })
}

test('a cookie with any changed character does not open, even if the original is cached', t => {
  const { seal, open, header, cache } = setUp()
  const chunk = seal(recordOf({ token: 'token', refresh_token: 'refresh' }))[0] as string
  cache(header([chunk]))
  for (let index = 0; index < chunk.length; index++) {
    for (const other of ['A', '.', '-', '1', '2', '=', '%', '"']) {
      if (other === chunk[index]) continue
      t.is(open(header([chunk.slice(0, index) + other + chunk.slice(index + 1)])), undefined, `${other} at ${index}`)
    }
    t.is(open(header([chunk.slice(0, index)])), undefined, `cut at ${index}`)
  }
})

test('a session that was sealed for another cookie name, purpose or secret does not open', t => {
  const { seal, open, header } = setUp()
  const chunks = seal(dual)
  t.deepEqual(open(header(chunks)), dual)
  const renamed = setUp({ name: `__Host-${NAME}` })
  t.is(renamed.open(renamed.header(chunks)), undefined)
  t.is(setUp({ purpose: 'session cookie, other mode' }).open(header(chunks)), undefined)
  t.is(setUp({ secrets: [OTHER_SECRET] }).open(header(chunks)), undefined)
})

test('sessions sealed with an old secret open until the secret is removed, and new sessions are sealed with the new secret', t => {
  const { open, headerFor, cache, replaceSecrets } = setUp()
  const old = headerFor(dual)
  cache(old)
  replaceSecrets([OTHER_SECRET, SECRET])
  t.deepEqual(open(old), dual)
  const fresh = headerFor(dual)
  t.deepEqual(setUp({ secrets: [OTHER_SECRET] }).open(fresh), dual)
  replaceSecrets([OTHER_SECRET])
  t.is(open(old), undefined)
  t.deepEqual(open(fresh), dual)
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

test('all requests with a cookie share the session that the first of them has opened', t => {
  const { open, headerFor } = setUp()
  const header = headerFor(recordOf({ refresh_token: 'r' }))
  const first = open(header)
  t.truthy(first)
  open(header)
  t.is(open(header), first)
})

test('the sessions of 1,000 opened cookies are cached, and the oldest of them is evicted', t => {
  const { open, headerFor, decryptions } = setUp()
  const headers = Array.from({ length: 1001 }, (_, n) => headerFor(recordOf({ refresh_token: `r${n}` })))
  // A session is cached when its cookie is opened for the second time.
  for (const header of headers) for (const _time of [1, 2]) open(header)
  const before = decryptions()
  open(headers.at(-1) ?? '')
  t.is(decryptions(), before, 'the newest session is cached')
  open(headers[0] ?? '')
  t.is(decryptions(), before + 1, 'the oldest session was evicted')
})
