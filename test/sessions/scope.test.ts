// A refresh names its scopes (RFC 6749 section 6). Some providers (Salesforce) refuse that. In single mode, the next request then
// names none.
import test from 'ava'
import { quirksOf } from '#src/provider/quirks.js'
import { jwt } from '../helpers/jwt.js'
import { oauthError } from '../login/fake-idp.js'
import { setUpExpired } from './setup.js'

const SCOPE = 'data:read'

async function setUp(options: Parameters<typeof setUpExpired>[1] = {}) {
  const started = await setUpExpired('single', options)
  /** The scopes of all refresh requests. */
  const scopes = () => started.idp.grants.flatMap(grant => (grant.type === 'refresh' ? [grant.scope] : []))
  return { ...started, scopes }
}

for (const code of ['invalid_scope', 'invalid_request']) {
  test(`if a provider refuses the scope of a refresh with ${code}, the next request of the same refresh names none, and so do all later ones`, async t => {
    const { record, clock, idp, live, login, scopes, logs, cells } = await setUp()
    const other = await login('another-session')
    idp.next(oauthError(code))
    const refreshed = await live(record)
    t.is(refreshed.fields.refresh_token, idp.newestRefreshToken)
    t.deepEqual(scopes(), [SCOPE, undefined])
    t.like(logs.first('refresh_scope_refused'), { level: 'warn' })
    t.regex(JSON.stringify(logs.first('refresh_scope_refused')), /refused a refresh that names scopes/)
    t.is((await cells.read({ id: record.id }, false)).content?.entry.suspect, undefined)
    clock.advanceSeconds(3601)
    await live(refreshed)
    await live(other)
    t.deepEqual(scopes(), [SCOPE, undefined, undefined, undefined])
    t.is(logs.all('refresh_scope_refused').length, 1)
    t.is(logs.first('refresh_failed'), undefined)
  })
}

test('if a refresh without scope fails as well, its error counts, and the next refresh names the scopes again', async t => {
  const { record, clock, idp, live, unavailable, scopes } = await setUp()
  idp.next(oauthError('invalid_request'), oauthError('invalid_request'))
  t.like(await unavailable(record), { why: 'provider', retryAfterSeconds: 2 })
  clock.advanceSeconds(2)
  idp.next(oauthError('invalid_scope'), oauthError('temporarily_unavailable'))
  t.is((await unavailable(record)).why, 'provider')
  clock.advanceSeconds(1)
  await live(record)
  t.deepEqual(scopes(), [SCOPE, undefined, SCOPE, undefined, SCOPE])
})

test('if a refresh is refused both with and without its scope, the session ends', async t => {
  const { record, idp, current } = await setUp()
  idp.next(oauthError('invalid_scope'), oauthError('invalid_scope'))
  t.deepEqual(await current(record), { kind: 'over', end: { reason: 'refused' } })
})

test('the series of ambiguous refusals continues over refusals of the scope', async t => {
  const { record, clock, idp, current } = await setUp()
  const began = clock.now()
  idp.next(...Array.from({ length: 60 }, () => oauthError('invalid_request')))
  let session = await current(record)
  for (; session.kind === 'unavailable'; session = await current(record))
    clock.advanceSeconds(session.retryAfterSeconds)
  t.deepEqual(session, { kind: 'over', end: { reason: 'refused' } })
  t.is(clock.now() - began, 602_000)
})

for (const [code, kind] of [
  ['invalid_scope', 'over'],
  ['invalid_request', 'unavailable'],
  ['invalid_client', 'unavailable'],
  ['token_unknown', 'unavailable']
] as const) {
  test(`a refresh names its scopes after ${code} at a provider that needs them, or if the code is about something else`, async t => {
    const isAboutScope = code.startsWith('invalid_scope') || code === 'invalid_request'
    const metadata = isAboutScope ? { quirks: quirksOf({ issuer: 'https://developer.api.autodesk.com' }) } : {}
    const { record, idp, current, scopes } = await setUp({ metadata })
    idp.next(oauthError(code))
    t.is((await current(record)).kind, kind)
    t.deepEqual(scopes(), [SCOPE])
  })
}

for (const [where, tokens] of Object.entries({
  response: { scope: ['data:read', 'data:write'] },
  token: { accessToken: jwt({ scope: 'data:read data:write' }) }
})) {
  test(`if a refresh without scope returns more than platform.scopes in the ${where}, the session ends and its refresh token is revoked`, async t => {
    const { record, idp, current, logs, clock, login, live, scopes } = await setUp()
    const other = await login('another-session')
    idp.next(oauthError('invalid_scope'), tokens)
    t.deepEqual(await current(record), { kind: 'over', end: { reason: 'refused' } })
    t.deepEqual(idp.revoked, [idp.newestRefreshToken])
    t.regex(JSON.stringify(logs.all('refresh_failed').at(-1)), /more than platform.scopes \(data:write\)/)
    clock.advanceSeconds(3601)
    await live(other)
    t.is(scopes().at(-1), SCOPE, 'nothing was remembered')
  })
}
