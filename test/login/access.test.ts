import test from 'ava'
import { accessEntries } from '#src/config/types/access-entry.js'
import { createAccess, createAccessRule, type Judgement } from '#src/login/access.js'
import { ProviderError } from '#src/provider/provider-error.js'
import type { Denial } from '#src/sessions/index.js'
import { assertCases } from '../helpers/case-file.js'
import { createFakeIdp } from './fake-idp.js'

function entriesOf(...written: readonly string[]) {
  const parsed = accessEntries.parse(written)
  if (!('value' in parsed)) throw new Error(parsed.reason)
  return parsed.value
}

const denied = (problem: Denial['problem'], ...missing: readonly string[]): Denial => ({
  reason: 'denied',
  problem,
  missing
})

test('what the access list decides', t =>
  assertCases(t, 'test/login/access.txt', (input, entries) => {
    const [idToken, userInfo = {}] = JSON.parse(`[${input}]`)
    const { problem = 'allowed', missing = [] } = createAccessRule(entriesOf(...entries))(idToken, userInfo) ?? {}
    return [problem, ...missing].join(' ')
  }))

const listed = { email: 'ada@team.example', email_verified: true }
const other = { email: 'eve@evil.example', email_verified: true }
const editor = { roles: ['editor'] }
const viewer = { roles: ['viewer'] }
const email = { email: listed.email }

const judgements: readonly (readonly [claims: Readonly<Record<string, unknown>>, judgement: Judgement])[] = [
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
