import test from 'ava'
import { accessEntries } from '#src/config/access-entry.js'
import { createAccess, createAccessRule, denialFields, type Judgement } from '#src/login/access.js'
import { ProviderError } from '#src/provider/errors.js'
import type { Denial } from '#src/sessions/index.js'
import { createFakeIdp } from './fake-idp.js'

function entriesOf(...written: readonly string[]) {
  const parsed = accessEntries.parse(written)
  if (!('value' in parsed)) throw new Error(parsed.reason)
  return parsed.value
}

/** The rule of the setting `access.allow` with these entries. */
const ruleOf = (...written: readonly string[]) => createAccessRule(entriesOf(...written))

const decide = ruleOf('Ada@Example.com', '@team.example', '@bücher.example', '@bank.example')

const table: readonly (readonly [what: string, email: unknown, decision: 'allowed' | Denial['problem']])[] = [
  ['a listed address', 'ada@example.com', 'allowed'],
  ['a listed address in another case', 'ADA@EXAMPLE.COM', 'allowed'],
  ['another address of that domain', 'grace@example.com', 'not_listed'],
  ['an address of a listed domain', 'anybody@team.example', 'allowed'],
  ['an address of a listed domain in another case', 'Any.Body@Team.Example', 'allowed'],
  ['a sub-domain of a listed domain', 'anybody@a.team.example', 'not_listed'],
  ['a domain that ends like a listed one', 'anybody@ateam.example', 'not_listed'],
  ['a domain that begins like a listed one', 'anybody@team.example.org', 'not_listed'],
  ['an internationalised domain', 'eva@bücher.example', 'allowed'],
  ['an internationalised domain that is not in normal form', 'eva@bu\u0308cher.example', 'no_email'],
  ['the ASCII form of an internationalised domain', 'eva@xn--bcher-kva.example', 'allowed'],
  ['the ASCII form in another case', 'eva@XN--BCHER-KVA.example', 'allowed'],
  ['the Kelvin sign in the place of a k', 'eva@ban\u212a.example', 'no_email'],
  ['a soft hyphen in a domain', 'eva@ba\u00adnk.example', 'no_email'],
  ['the Kelvin sign in a local part', '\u212a@example.com', 'not_listed'],
  ['a full-width domain', 'eva@ｂａｎｋ.example', 'no_email'],
  ['a final dot', 'anybody@team.example.', 'no_email'],
  ['two @', 'mallory@evil.example@team.example', 'no_email'],
  ['a quoted @', '"mallory@evil.example"@team.example', 'no_email'],
  ['no @', 'team.example', 'no_email'],
  ['no local part', '@team.example', 'no_email'],
  ['no domain', 'ada@', 'no_email'],
  ['a space in front', ' ada@example.com', 'no_email'],
  ['a line break behind', 'ada@example.com\n', 'no_email'],
  ['a null byte', 'ada\u0000@example.com', 'no_email'],
  ['a tab in the domain', 'ada@team\t.example', 'no_email'],
  ['a path behind the domain', 'ada@team.example/x', 'no_email'],
  ['a list', ['ada@example.com'], 'no_email'],
  ['a number', 7, 'no_email'],
  ['null', null, 'no_email'],
  ['an empty text', '', 'no_email'],
  ['nothing', undefined, 'no_email']
]

for (const [what, email, decision] of table) {
  test(`the access list decides "${decision}" for ${what}`, t => {
    t.is(decide({ email, email_verified: true })?.problem ?? 'allowed', decision)
  })
}

for (const verified of [false, 'true', 1, null, undefined, {}, ['true']]) {
  test(`an email address is accepted only if email_verified is the JSON value true, not ${JSON.stringify(verified)}`, t => {
    t.deepEqual(decide({ email: 'ada@example.com', email_verified: verified }), {
      reason: 'denied',
      problem: 'not_verified',
      missing: []
    })
  })
}

const member = {
  groups: ['staff', 'admins'],
  realm_access: { roles: ['editor'] },
  level: 7,
  active: true,
  tenant: 'one'
}

const fitting: readonly (readonly [entry: string, claims: Record<string, unknown>])[] = [
  ['groups=admins', member],
  ['realm_access.roles=editor', member],
  ['tenant=one', member],
  ['level=7', member],
  ['active=true', member],
  ['groups=Team Admins', { groups: ['Team Admins'] }],
  ['scope=a=b', { scope: 'a=b' }],
  ['preferred_username=ada@example.com', { preferred_username: 'ada@example.com' }],
  ['https://example.com/roles=admin', { 'https://example.com/roles': ['admin'] }],
  ['resource_access.my.app.roles=admin', { resource_access: { 'my.app': { roles: ['admin'] } } }],
  ['a.b.c=x', { a: { b: 'y' }, 'a.b': { c: 'x' } }]
]
for (const [entry, claims] of fitting) {
  test(`the entry ${entry} fits ${JSON.stringify(claims)}`, t => {
    t.is(ruleOf(entry)(claims), undefined)
  })
}

const notFitting: readonly (readonly [entry: string, claims: Record<string, unknown>, missing: readonly string[]])[] = [
  ['groups=admin', member, []],
  ['groups=Admins', member, []],
  ['groups=staff,admins', member, []],
  ['realm_access=editor', member, []],
  ['realm_access.roles=admin', member, []],
  ['tenant=on', member, []],
  ['groups=[object Object]', { groups: { a: 1 } }, []],
  ['groups=a,b', { groups: [['a', 'b']] }, []],
  ['group=admins', member, ['group']],
  ['realm_access.role=editor', member, ['realm_access.role']],
  ['groups.0=staff', member, ['groups.0']],
  ['tenant.length=3', member, ['tenant.length']],
  ['constructor.name=Object', member, ['constructor.name']],
  ['__proto__.x=1', member, ['__proto__.x']],
  ['groups=null', { groups: null }, ['groups']],
  ['groups=undefined', {}, ['groups']]
]
for (const [entry, claims, missing] of notFitting) {
  test(`the entry ${entry} does not fit ${JSON.stringify(claims)}`, t => {
    t.deepEqual(ruleOf(entry)(claims), {
      reason: 'denied',
      problem: missing.length > 0 ? 'no_claim' : 'not_listed',
      missing
    })
  })
}

test('an account may sign in if one entry fits one of its sources, and unknown claims are named', t => {
  const rule = ruleOf('@team.example', 'groups=admins', 'roles=editor')
  const email = { email: 'ada@team.example', email_verified: true }
  t.is(rule({}, email), undefined)
  t.is(rule(email, {}), undefined)
  t.is(rule({ groups: 'admins' }, {}), undefined)
  t.is(rule({}, { groups: 'admins' }), undefined)
  t.deepEqual(rule({ groups: [] }, { email: 'eve@evil.example', email_verified: true }), {
    reason: 'denied',
    problem: 'not_listed',
    missing: ['roles']
  })
  t.deepEqual(rule({ email: 'eve@evil.example', email_verified: true }, {}), {
    reason: 'denied',
    problem: 'not_listed',
    missing: ['groups', 'roles']
  })
})

const listed = { email: 'ada@team.example', email_verified: true }
const other = { email: 'eve@evil.example', email_verified: true }
const editor = { roles: ['editor'] }
const viewer = { roles: ['viewer'] }
const email = { email: listed.email }
const verified = { email_verified: true }

const merged: readonly (readonly [
  idToken: Record<string, unknown>,
  userInfo: Record<string, unknown>,
  decision: 'allowed' | Denial['problem']
])[] = [
  [editor, {}, 'allowed'],
  [{}, editor, 'allowed'],
  [viewer, editor, 'no_email'],
  [{ roles: [] }, editor, 'no_email'],
  [{ roles: null }, editor, 'allowed'],
  [listed, other, 'allowed'],
  [other, listed, 'not_listed'],
  [{ ...listed, email_verified: false }, listed, 'not_verified'],
  [{ ...listed, email_verified: 'true' }, listed, 'not_verified'],
  [email, listed, 'allowed'],
  [email, other, 'not_listed'],
  [email, verified, 'not_verified'],
  [verified, email, 'not_verified'],
  [{ ...email, email_verified: null }, verified, 'not_verified'],
  [viewer, listed, 'allowed'],
  [other, editor, 'allowed']
]
for (const [idToken, userInfo, decision] of merged) {
  test(`each claim counts from one source only: ID token ${JSON.stringify(idToken)}, user info ${JSON.stringify(userInfo)}: ${decision}`, t => {
    t.is(ruleOf('@team.example', 'roles=editor')(idToken, userInfo)?.problem ?? 'allowed', decision)
  })
}

const judgements: readonly (readonly [claims: Record<string, unknown>, judgement: Judgement])[] = [
  [editor, 'allowed'],
  [listed, 'allowed'],
  [{}, 'incomplete'],
  [viewer, 'incomplete'],
  [{ ...viewer, ...email }, 'incomplete'],
  [other, 'incomplete'],
  [{ ...viewer, ...other }, 'denied'],
  [{ ...viewer, ...email, email_verified: false }, 'denied']
]
for (const [claims, judgement] of judgements) {
  test(`an ID token with ${JSON.stringify(claims)} is ${judgement}, and the user info is asked only for what it lacks`, async t => {
    const idp = createFakeIdp()
    let asked = 0
    idp.userInfo = async () => {
      asked++
      return { ...editor, ...listed }
    }
    const access = createAccess(entriesOf('@team.example', 'roles=editor'), idp)
    const checked = { sub: 'user-1', ...claims }
    t.is(access.judge(checked), judgement)
    const denial = await access.decide({ claims: checked, accessToken: 'a', mayRefuse: true })
    t.is(denial === undefined, judgement !== 'denied')
    t.is(asked, judgement === 'incomplete' ? 1 : 0)
  })
}

for (const status of [401, 403]) {
  test(`if the user info endpoint responds with ${status}, the ID token alone decides if it may, and otherwise the account cannot be checked`, async t => {
    const refusal = new ProviderError('userinfo', 'invalid_response', `it responded with ${status}`, { status })
    const idp = createFakeIdp()
    idp.userInfo = () => Promise.reject(refusal)
    const access = createAccess(entriesOf('roles=editor'), idp)
    const request = { claims: { sub: 'user-1' }, accessToken: 'a' }
    t.deepEqual(await access.decide({ ...request, mayRefuse: true }), {
      reason: 'denied',
      problem: 'no_claim',
      missing: ['roles']
    })
    t.is(await t.throwsAsync(access.decide({ ...request, mayRefuse: false })), refusal)
    t.is(await t.throwsAsync(access.decide({ ...request, claims: undefined, mayRefuse: true })), refusal)
  })
}

test('the log says why an account is not allowed, and which claims it lacks', t => {
  const missing = ['groups', 'realm_access.roles']
  t.deepEqual(denialFields({ reason: 'denied', problem: 'no_claim', missing }), {
    access: 'no_claim',
    missing_claims: missing
  })
  t.deepEqual(denialFields({ reason: 'denied', problem: 'not_listed', missing: [] }), { access: 'not_listed' })
})
