import test from 'ava'
import fc from 'fast-check'
import { checkIdToken, checkRefreshedIdToken, type ExpectedClaims } from '#src/provider/id-token.js'
import { ProviderError } from '#src/provider/provider-error.js'
import { jwt } from '../helpers/jwt.js'
import { holdsNone } from './secrets.js'

const NOW = 1_700_000_000_000
const NOW_SECONDS = NOW / 1000
const issuer = 'https://idp.example'
const expected: ExpectedClaims = { nonce: 'the-nonce', clientId: 'our-client', issuer, now: NOW }
const good = {
  iss: issuer,
  aud: 'our-client',
  nonce: 'the-nonce',
  iat: NOW_SECONDS,
  exp: NOW_SECONDS + 3600,
  sub: 'somebody'
}

const accepted: readonly (readonly [what: string, claims: object, expected?: Partial<ExpectedClaims>])[] = [
  ['with the claims of the login', {}],
  ['with a list of one audience and our client id as azp', { aud: ['our-client'], azp: 'our-client' }],
  ['issued five minutes ahead of our clock', { iat: NOW_SECONDS + 300 }],
  ['issued a day ago that has not expired', { iat: NOW_SECONDS - 86_400 }],
  ['with a sub of the maximum length', { sub: 'x'.repeat(255) }],
  ['with several audiences and our client id as azp', { aud: ['our-client', 'other'], azp: 'our-client' }],
  ['that expired five minutes ago', { exp: NOW_SECONDS - 300 }],
  ['of any issuer, if no issuer is known', { iss: 'https://other.example' }, { issuer: undefined }]
]

for (const [what, claims, more] of accepted) {
  test(`an ID token ${what} is accepted`, t => {
    t.notThrows(() => checkIdToken(jwt({ ...good, ...claims }), { ...expected, ...more }))
  })
}

const refused: readonly (readonly [what: string, claims: object, why: RegExp])[] = [
  ['with the nonce of another login', { nonce: 'other-nonce' }, /nonce/],
  ['without a nonce', { nonce: undefined }, /nonce/],
  ['with a list of nonces', { nonce: ['the-nonce'] }, /nonce/],
  ['of another issuer', { iss: 'https://evil.example' }, /iss/],
  ['whose issuer has an additional slash', { iss: `${issuer}/` }, /iss/],
  ['for another client', { aud: 'other' }, /aud/],
  ['for other clients', { aud: ['other', 'our-client-2'] }, /aud/],
  ['without an audience', { aud: undefined }, /aud/],
  ['with several audiences and no azp', { aud: ['our-client', 'other'] }, /azp/],
  ['with several audiences and the azp of another client', { aud: ['our-client', 'other'], azp: 'other' }, /azp/],
  ['with our audience and the azp of another client', { azp: 'other' }, /azp/],
  ['without a sub', { sub: undefined }, /sub/],
  ['with an empty sub', { sub: '' }, /sub/],
  ['whose sub is a number', { sub: 7 }, /sub/],
  ['whose sub holds a line break', { sub: 'some\nbody' }, /sub/],
  ['without an iat', { iat: undefined }, /iat/],
  ['whose iat is a string', { iat: String(NOW_SECONDS) }, /iat/],
  ['issued more than five minutes ahead of our clock', { iat: NOW_SECONDS + 300.001 }, /iat/],
  ['that expired more than five minutes ago', { exp: NOW_SECONDS - 300.001 }, /expired/],
  ['whose exp is a string', { exp: String(NOW_SECONDS + 3600) }, /expired/],
  ['whose exp is null', { exp: null }, /expired/]
]

for (const [what, claims, why] of refused) {
  test(`an ID token ${what} is rejected`, t => {
    const error = t.throws(() => checkIdToken(jwt({ ...good, ...claims }), expected), { instanceOf: ProviderError })
    t.is(error.problem, 'invalid_response')
    t.is(error.endpoint, 'token')
    t.regex(error.message, why)
    holdsNone(t, error, ['the-nonce', 'other-nonce', 'somebody', jwt({ ...good, ...claims })])
  })
}

test('a text that is not a JWT is rejected', t => {
  const parts = ['', 'text', 'a.b', 'a.b.c', '..', `${jwt(good)}.more`, jwt(good).replace('.', '')]
  for (const text of [...parts, ...[null, 'text', 5, []].map(claims => jwt(claims))]) {
    t.throws(() => checkIdToken(text, expected), { instanceOf: ProviderError, message: /not a JWT/ }, text)
  }
})

test('an encrypted ID token, and an audience without its authorized party, are rejected with exactly this reason', t => {
  t.throws(() => checkIdToken('eyJhbGciOiJSU0EtT0FFUCJ9.a-b.c_d.e.f', expected), { message: /it is encrypted/ })
  const claims = { ...good, aud: [good.aud, 'another-client'] }
  t.throws(() => checkIdToken(jwt(claims), expected), { message: /its aud is a list, but azp is missing/ })
  t.notThrows(() => checkIdToken(jwt({ ...claims, azp: good.aud }), expected))
})

test('arbitrary text or claims are rejected with an ProviderError', t => {
  const texts = fc.oneof(
    fc.string(),
    fc.jsonValue().map(claims => jwt(claims))
  )
  fc.assert(
    fc.property(texts, text => {
      try {
        checkIdToken(text, expected)
        return false
      } catch (error) {
        return error instanceof ProviderError
      }
    })
  )
  t.pass()
})

const user = { iss: issuer, sub: 'somebody' }

test('the ID token of a refresh response needs neither a nonce nor an expiry', t => {
  const { nonce, exp, ...claims } = good
  t.notThrows(() => checkRefreshedIdToken(jwt(claims), user, 'our-client'))
})

const rejected: readonly (readonly [claim: string, claims: object, isOfOther: boolean])[] = [
  ['sub', { sub: 'somebody-else' }, true],
  ['sub', { sub: undefined }, true],
  ['iss', { iss: 'https://other.example' }, true],
  ['iss', { iss: undefined }, true],
  ['aud', { aud: 'other' }, false],
  ['azp', { azp: 'other' }, false]
]

for (const [claim, claims, isOfOther] of rejected) {
  test(`the ID token of a refresh response is rejected if its ${claim} is ${Object.values(claims)[0]}`, t => {
    const token = jwt({ ...good, ...claims })
    const error = t.throws(() => checkRefreshedIdToken(token, user, 'our-client'), { instanceOf: ProviderError })
    t.regex(error.message, new RegExp(`its ${claim} `))
    t.is(error.reason === 'identity_mismatch', isOfOther)
    holdsNone(t, error, ['somebody-else', 'https://other.example', token])
  })
}
