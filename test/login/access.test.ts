import test from 'ava'
import { type EmailAddress, parseEmailAddress } from '#src/config/access-entry.js'
import { type AccessDecision, createAccessRule } from '#src/login/access.js'

const decide = createAccessRule(
  ['Ada@Example.com', '@team.example', '@bücher.example', '@bank.example'].map(
    entry => parseEmailAddress(entry) as EmailAddress
  )
)

const table: readonly (readonly [what: string, email: unknown, decision: AccessDecision])[] = [
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
    t.is(decide({ email, email_verified: true }), decision)
  })
}

for (const verified of [false, 'true', 1, null, undefined, {}, ['true']]) {
  test(`an email address is accepted only if email_verified is the JSON value true, not ${JSON.stringify(verified)}`, t => {
    t.is(decide({ email: 'ada@example.com', email_verified: verified }), 'not_verified')
  })
}
