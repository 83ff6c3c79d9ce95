import test from 'ava'
import { accessEntries } from '#src/config/types/access-entry.js'
import { createAccess, createAccessRule, type Judgement } from '#src/login/access.js'
import { ProviderError } from '#src/provider/provider-error.js'
import type { Denial } from '#src/sessions/index.js'
import { createFakeIdp } from './fake-idp.js'

function entriesOf(...written: readonly string[]) {
  const parsed = accessEntries.parse(written)
  if (!('value' in parsed)) throw new Error(parsed.reason)
  return parsed.value
}

/** The rule of the setting `access.allow` with these entries. */
const ruleOf = (...written: readonly string[]) => createAccessRule(entriesOf(...written))

const denied = (problem: Denial['problem'], ...missing: readonly string[]): Denial => ({
  reason: 'denied',
  problem,
  missing
})

const decide = ruleOf('Ada@Example.com', '@team.example', '@bücher.example', '@bank.example')

type Decision = 'allowed' | Denial['problem']
const addresses: readonly (readonly [decision: Decision, what: string, emails: readonly unknown[]])[] = [
  ['allowed', 'a listed address', ['ada@example.com', 'ADA@EXAMPLE.COM']],
  ['allowed', 'a listed domain', ['anybody@team.example', 'Any.Body@Team.Example']],
  [
    'allowed',
    'an internationalised domain',
    ['eva@bücher.example', 'eva@xn--bcher-kva.example', 'eva@XN--BCHER-KVA.example']
  ],
  ['not_listed', 'another address', ['grace@example.com']],
  ['not_listed', 'a similar domain', ['eva@a.team.example', 'eva@ateam.example', 'eva@team.example.org']],
  ['not_listed', 'the Kelvin sign in the place of a k', ['\u212a@example.com']],
  ['no_email', 'the Kelvin sign, a soft hyphen', ['eva@ban\u212a.example', 'eva@ba\u00adnk.example']],
  ['no_email', 'a domain that is not in normal form', ['eva@bu\u0308cher.example', 'eva@ｂａｎｋ.example']],
  ['no_email', 'two @', ['mallory@evil.example@team.example', '"mallory@evil.example"@team.example']],
  ['no_email', 'a missing part', ['team.example', '@team.example', 'ada@', '']],
  ['no_email', 'more than a domain', ['ada@team.example/x', 'ada@team.example.']],
  ['no_email', 'white space', [' ada@example.com', 'ada@example.com\n', 'ada\u0000@example.com', 'ada@team\t.example']],
  ['no_email', 'another type', [['ada@example.com'], 7, null, undefined]]
]

for (const [decision, what, emails] of addresses) {
  test(`the access list decides "${decision}": ${what}`, t => {
    for (const email of emails) {
      t.is(decide({ email, email_verified: true })?.problem ?? 'allowed', decision, JSON.stringify(email))
    }
  })
}

test('an email address is accepted only if email_verified is the JSON value true', t => {
  for (const email_verified of [false, 'true', 1, null, undefined, {}, ['true']]) {
    t.deepEqual(decide({ email: 'ada@example.com', email_verified }), denied('not_verified'))
  }
})

const member = {
  groups: ['staff', 'admins'],
  realm_access: { roles: ['editor'] },
  level: 7,
  active: true,
  tenant: 'one'
}

type Claims = Readonly<Record<string, unknown>>

const fitting: readonly (readonly [entry: string, claims: Claims])[] = [
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

test('an entry fits the value of its claim, whose name may contain dots', t => {
  for (const [entry, claims] of fitting) t.is(ruleOf(entry)(claims), undefined, entry)
})

const notFitting: readonly (readonly [entry: string, claims: Claims, missing: readonly string[]])[] = [
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

test('an entry does not fit another value, and a claim that is missing is named', t => {
  for (const [entry, claims, missing] of notFitting) {
    const problem = missing.length > 0 ? 'no_claim' : 'not_listed'
    t.deepEqual(ruleOf(entry)(claims), denied(problem, ...missing), entry)
  }
})

test('an account may sign in if one entry fits one of its sources, and unknown claims are named', t => {
  const rule = ruleOf('@team.example', 'groups=admins', 'roles=editor')
  const email = { email: 'ada@team.example', email_verified: true }
  t.is(rule({}, email), undefined)
  t.is(rule(email, {}), undefined)
  t.is(rule({ groups: 'admins' }, {}), undefined)
  t.is(rule({}, { groups: 'admins' }), undefined)
  const eve = { email: 'eve@evil.example', email_verified: true }
  t.deepEqual(rule({ groups: [] }, eve), denied('not_listed', 'roles'))
  t.deepEqual(rule(eve, {}), denied('not_listed', 'groups', 'roles'))
})

const listed = { email: 'ada@team.example', email_verified: true }
const other = { email: 'eve@evil.example', email_verified: true }
const editor = { roles: ['editor'] }
const viewer = { roles: ['viewer'] }
const email = { email: listed.email }
const verified = { email_verified: true }

const merged: readonly (readonly [idToken: Claims, userInfo: Claims, decision: Decision])[] = [
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

test('each claim counts from one source only, the ID token before the user info', t => {
  const rule = ruleOf('@team.example', 'roles=editor')
  for (const [idToken, userInfo, decision] of merged) {
    t.is(rule(idToken, userInfo)?.problem ?? 'allowed', decision, JSON.stringify([idToken, userInfo]))
  }
})

const judgements: readonly (readonly [claims: Claims, judgement: Judgement])[] = [
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
    const access = createAccess({ allow: entriesOf('@team.example', 'roles=editor') }, idp)
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
    const access = createAccess({ allow: entriesOf('roles=editor') }, idp)
    const request = { claims: { sub: 'user-1' }, accessToken: 'a' }
    t.deepEqual(await access.decide({ ...request, mayRefuse: true }), denied('no_claim', 'roles'))
    t.is(await t.throwsAsync(access.decide({ ...request, mayRefuse: false })), refusal)
    t.is(await t.throwsAsync(access.decide({ ...request, claims: undefined, mayRefuse: true })), refusal)
  })
}

test('a login without an ID token does not show how the user has signed in, and a refresh need not', async t => {
  for (const [requirements, problem] of [
    [{ acr: ['mfa'] }, 'acr'],
    [{ maxAgeSeconds: 60 }, 'auth_time']
  ] as const) {
    const access = createAccess(requirements, createFakeIdp())
    const request = { claims: undefined, accessToken: 'a', mayRefuse: true }
    t.is((await access.decide({ ...request, isLogin: true }))?.problem, problem)
    t.is(await access.decide(request), undefined)
  }
})
