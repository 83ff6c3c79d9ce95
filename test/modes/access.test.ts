import test from 'ava'
import { accessEntries } from '#src/config/access-entry.js'
import { createAccessRule, type Denial, denialFields, denialOf, endReasonOf } from '#src/modes/access.js'

/** The rule of the setting `access.allow` with these entries. */
function ruleOf(...written: readonly string[]) {
  const parsed = accessEntries.parse(written)
  if (!('value' in parsed)) throw new Error(parsed.reason)
  return createAccessRule(parsed.value)
}

const decide = ruleOf('Ada@Example.com', '@team.example', '@bücher.example', '@bank.example')

const table: readonly (readonly [what: string, email: unknown, decision: 'allowed' | Denial['reason']])[] = [
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
    t.is(decide({ email, email_verified: true })?.reason ?? 'allowed', decision)
  })
}

for (const verified of [false, 'true', 1, null, undefined, {}, ['true']]) {
  test(`an email address is accepted only if email_verified is the JSON value true, not ${JSON.stringify(verified)}`, t => {
    t.deepEqual(decide({ email: 'ada@example.com', email_verified: verified }), { reason: 'not_verified', missing: [] })
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
    t.deepEqual(ruleOf(entry)(claims), { reason: missing.length > 0 ? 'no_claim' : 'not_listed', missing })
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
    reason: 'not_listed',
    missing: ['roles']
  })
  t.deepEqual(rule({ email: 'eve@evil.example', email_verified: true }, {}), {
    reason: 'no_email',
    missing: ['groups', 'roles']
  })
})

test('the store keeps a denial as text', t => {
  for (const denial of [
    { reason: 'not_listed', missing: [] },
    { reason: 'no_claim', missing: ['groups', 'realm_access.roles'] }
  ] as const)
    t.deepEqual(denialOf(endReasonOf(denial)), denial)
  for (const reason of ['refused', 'failed', 'other_identity', '', 'denied', 'denied other'])
    t.is(denialOf(reason), undefined, reason)
  t.deepEqual(denialFields({ reason: 'no_claim', missing: ['groups'] }), {
    access: 'no_claim',
    missing_claims: ['groups']
  })
})
