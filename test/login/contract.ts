// The behaviour that both modes share (sections 2, 4 and 5 of the service contract). Each mode's test file calls this once.
import test from 'ava'
import fc from 'fast-check'
import type { Mode, TokenStep } from '#src/login/mode.js'
import type { AuthorizationCode, ModeDependencies, TokenState } from '#src/login/token-requests.js'
import type { UserInfo } from '#src/provider/id-token.js'
import { APS } from '#src/provider/metadata.js'
import { quirksOf } from '#src/provider/quirks.js'
import { createClock } from '../helpers/clock.js'
import { jwt } from '../helpers/jwt.js'
import { createFakeIdp, type FakeIdpOptions } from './fake-idp.js'

export const timeoutMs = 60_000
export const grant: AuthorizationCode = {
  code: 'the-code',
  codeVerifier: 'the-verifier',
  nonce: 'the-nonce',
  timeoutMs
}

/** Sends all token requests of a login. */
export async function completeLogin(mode: Mode): Promise<TokenState> {
  return complete(mode, await mode.exchangeCode(grant))
}

/** Sends all token requests of a refresh. */
export async function completeRefresh(mode: Mode, login: TokenState): Promise<TokenState> {
  return complete(mode, await mode.nextRequest(login, timeoutMs))
}

async function complete(mode: Mode, { state }: TokenStep): Promise<TokenState> {
  const isComplete = state.kind === 'complete'
  if (mode.isSecondRequest(state) === isComplete) throw new Error('the mode contradicts itself')
  return isComplete ? state : complete(mode, await mode.nextRequest(state, timeoutMs))
}

interface ModeUnderTest {
  readonly name: Mode['name']
  /** The scopes that the mode requests at login. */
  readonly scopes: readonly string[]
  /** The number of token requests of one login, and also of one refresh. */
  readonly grants: number
  /** The session's fields that hold an access token. */
  readonly tokenFields: readonly ('token' | 'public_token' | 'internal_token')[]
  /** The user infos from which this mode makes another display name than the other mode. */
  readonly names: readonly NamedUser[]
  /** @param more scopes that the login requests in addition to the usual ones */
  create(dependencies: ModeDependencies, more?: readonly string[]): Mode
}

type NamedUser = readonly [userInfo: UserInfo, displayName: string]

const commonNames: readonly NamedUser[] = [
  [{ preferred_username: 'ada', userName: 'lovelace' }, 'ada'],
  [{ name: '', displayName: 'Ada', preferred_username: 'ada' }, 'Ada'],
  [{ display_name: 'Ada', email: 'ada@example.com' }, 'Ada'],
  [{ global_name: 'Ada', login: 'ada' }, 'Ada'],
  [{ name: null, login: 'ada', email: 'ada@example.com' }, 'ada'],
  [{ name: '', login: '', email: 'ada@example.com' }, 'ada@example.com'],
  [{ userName: 'lovelace', email: 'ada@mail.example' }, 'lovelace'],
  [{ email: 'ada@mail.example', sub: '7' }, 'ada@mail.example'],
  [{ name: '', email: '', sub: '7' }, '7']
]

type ModeOptions = FakeIdpOptions & { readonly keepsIdToken?: boolean; readonly more?: readonly string[] }

export function setUpMode(
  { create }: Pick<ModeUnderTest, 'create'>,
  { keepsIdToken = false, more = [], ...options }: ModeOptions = {}
) {
  const clock = createClock(1_700_000_000_000)
  const idp = createFakeIdp(options)
  const mode = create({ idp, clientId: 'our-client', keepsIdToken, now: clock.now }, more)
  return { mode, idp, clock }
}

export function modeContract(under: ModeUnderTest): void {
  const { name, scopes, grants, tokenFields, names } = under
  const setUp = (options?: ModeOptions) => setUpMode(under, options)

  test(`${name}: a login returns the session fields of its mode with the newest refresh token`, async t => {
    const { mode, idp, clock } = setUp({ lifetimeSeconds: 3599.00049 })
    const { fields } = await completeLogin(mode)
    t.deepEqual(Object.keys(fields).sort(), [...tokenFields, 'expires_at', 'refresh_token'].sort())
    t.is(new Set(tokenFields.map(field => fields[field])).size, grants)
    t.is(fields.refresh_token, idp.newestRefreshToken)
    t.is(fields.expires_at, clock.now() + 3_599_000, 'a whole number of milliseconds')
    t.is(mode.tokens(fields, clock.now() + 3_700_000).public.expires_in, 0, 'never negative')
  })

  test(`${name}: a login and a refresh keep the refresh token if a later token response contains none`, async t => {
    const { mode, idp } = setUp({ rotates: false })
    const login = await completeLogin(mode)
    for (const { fields } of [login, await completeRefresh(mode, login)]) t.is(fields.refresh_token, 'refresh-token-1')
    t.deepEqual(idp.reused, [])
  })

  test(`${name}: a login is accepted if the token response grants more scopes than requested or does not state its scopes`, async t => {
    for (const scope of [undefined, [...scopes].reverse(), [...scopes, 'more']]) {
      const { mode, idp } = setUp()
      idp.next({ scope })
      await t.notThrowsAsync(mode.exchangeCode(grant))
    }
  })

  const user = { iss: 'https://idp.example', sub: 'user-1', name: 'Ada Lovelace' }
  const claims = { ...user, aud: 'our-client', nonce: 'the-nonce', iat: 1_700_000_000, exp: 1_700_003_600 }
  const asking = { more: ['openid'], issuer: 'https://idp.example' }

  test(`${name}: if the scope openid was requested, a valid ID token is accepted and gives the issuer and subject of the session`, async t => {
    const { mode, idp } = setUp(asking)
    idp.next({ idToken: jwt(claims) })
    const exchanged = await mode.exchangeCode(grant)
    t.deepEqual(exchanged.state.identity, user)
    t.like(exchanged.claims, user)
  })

  const keeping: readonly (readonly [what: string, options: ModeOptions, isKept: boolean])[] = [
    ['logout at the provider', { keepsIdToken: true }, true],
    ['logout at this server only', { keepsIdToken: false }, false],
    ['no end-session endpoint', { keepsIdToken: true, metadata: { endSessionEndpoint: undefined } }, false],
    ['APS, which does not support id_token_hint', { keepsIdToken: true, metadata: { quirks: quirksOf(APS) } }, false]
  ]

  for (const [what, options, isKept] of keeping) {
    test(`${name}: with ${what}, the session ${isKept ? 'keeps' : 'does not keep'} the ID token`, async t => {
      const { mode, idp } = setUp({ ...asking, ...options })
      const idToken = jwt(claims)
      idp.next({ idToken })
      t.is((await mode.exchangeCode(grant)).state.identity?.idToken, isKept ? idToken : undefined)
    })
  }

  test(`${name}: for any user info the display name is a string of limited length without spaces around it`, t => {
    const { mode } = setUp()
    const members = ['name', 'firstName', 'lastName', 'given_name', 'family_name', 'preferred_username', 'userName']
    const value = fc.oneof(fc.jsonValue(), fc.string(), fc.constantFrom('', ' ', 'x'.repeat(20_000)))
    const userInfo = fc.dictionary(fc.constantFrom(...members), value)
    fc.assert(
      fc.property(userInfo, info => {
        const name = mode.displayName(info)
        return typeof name === 'string' && name.length <= 2001 && (name === '' || !/^\s|\s$/.test(name))
      })
    )
    t.is(mode.displayName({}), '')
    t.is(mode.displayName({ name: 'x'.repeat(10_000) }).length, 1000)
    t.is(mode.displayName({ name: null, firstName: 5, lastName: {} }), '')
  })

  test(`${name}: the display name is the first usable one of the user info`, t => {
    const { mode } = setUp()
    for (const [userInfo, displayName] of [...names, ...commonNames]) t.is(mode.displayName(userInfo), displayName)
  })
}
