// Responses of real providers that deviate from the standards, in both modes: what users, operators and pages see.
import test, { type ExecutionContext } from 'ava'
import { discovered } from '../helpers/config.js'
import { createHostileIdp, faults } from '../helpers/hostile-idp/index.js'
import { type ModeName, modes } from '../helpers/modes.js'
import {
  openCallback,
  signIn,
  startLogin,
  startTestServer,
  type TestServer,
  type TestServerOptions
} from '../helpers/server.js'

const scopes = {
  scopes: ['openid', 'read', 'write'],
  internalScopes: ['openid', 'read', 'write'],
  publicScopes: ['read']
}

/** Starts a server with a discovery document, and signs nobody in. */
async function start(
  t: ExecutionContext,
  mode: ModeName,
  { platform, ...overrides }: NonNullable<TestServerOptions['overrides']> = {}
): Promise<TestServer> {
  const idp = await createHostileIdp(t, { callbackUrl: 'http://localhost:8080/api/auth/callback' })
  const settings = { ...overrides, platform: { ...discovered(idp), ...scopes, ...platform } }
  return startTestServer(t, { mode, idp, overrides: settings })
}

/** Members of the first token response of a login, and the scopes of the warning. */
const tokenResponses: readonly (readonly [what: string, members: Record<string, unknown>, missing?: string])[] = [
  ['Google: the user unticked a scope', { scope: 'openid read' }, 'write'],
  ['GitHub: commas', { scope: 'openid,read,write' }],
  ['Twitch: a list', { scope: ['openid', 'read', 'write'] }],
  ['GitHub Apps: an empty scope', { scope: '' }],
  ['Azure AD B2C: digits', { expires_in: '3599' }],
  ['GitHub: no expires_in', { expires_in: undefined }],
  ['Apigee: BearerToken', { token_type: 'BearerToken' }]
]

for (const mode of modes) {
  for (const [what, members, missing] of tokenResponses) {
    test(`${mode}: a login succeeds with the token response of ${what}`, async t => {
      const { browser, idp, logs } = await start(t, mode)
      idp.fail('token', faults.change(members))
      const callbackUrl = await startLogin(browser)
      t.is((await openCallback(browser, callbackUrl)).statusCode, 302)
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
      t.is((await openCallback(browser, callbackUrl)).statusCode, 302)
      const warnings = logs.all('scopes_missing')
      t.deepEqual(
        warnings.map(line => line.scopes),
        missing === undefined ? [] : [missing]
      )
    })
  }

  test(`${mode}: if nothing was granted, the page says that consent is missing, and the refresh token is revoked`, async t => {
    const { browser, idp } = await start(t, mode)
    idp.fail('token', faults.change({ scope: 'other' }))
    const response = await openCallback(browser, await startLogin(browser))
    t.is(response.statusCode, 403)
    t.true(response.text().includes('Consent is missing'))
    t.true(response.text().includes('consent_required'))
    t.deepEqual(idp.revoked, [idp.issued.refreshTokens[0]?.value])
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 401)
  })

  test(`${mode}: a token response with status 201 is a success`, async t => {
    const { browser, idp } = await start(t, mode)
    idp.failWhen(
      'token',
      () =>
        ({ process, send }) =>
          send({ ...process(), status: 201 })
    )
    await signIn(browser)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  })
}
