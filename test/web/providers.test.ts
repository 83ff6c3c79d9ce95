// Each guide of docs/reference/providers, with the settings that it tells to copy, at a stand-in that answers as the documents of the
// provider say: a login, three expiries, a logout and `check`.
import { readdir, readFile } from 'node:fs/promises'
import test from 'ava'
import { checkAt } from '../cli/check/checked.js'
import { publicOrigin } from '../helpers/config.js'
import { type HostileIdp, type Quirks, quirksOf } from '../helpers/hostile-idp/index.js'
import { modes } from '../helpers/modes.js'
import { openCallback, startLogin } from '../helpers/server.js'
import { afterAnHour, startDiscovered } from './support.js'

interface Guide {
  readonly quirks: Quirks
  /** Endpoints that the discovery document of the provider does not have. */
  readonly lacks?: readonly ('end_session_endpoint' | 'revocation_endpoint')[]
  /** What does not work in dual mode, as the guide says, and the status of the response. */
  readonly dual?: readonly [what: 'login' | 'refresh', status: number]
}

const guides: Readonly<Record<string, Guide>> = {
  aps: { quirks: {} },
  auth0: { quirks: quirksOf.auth0 },
  authentik: { quirks: quirksOf.authentik },
  cognito: { quirks: quirksOf.cognito, dual: ['login', 502] },
  dex: { quirks: quirksOf.dex, lacks: ['end_session_endpoint', 'revocation_endpoint'] },
  'django-oauth-toolkit': { quirks: quirksOf.django, dual: ['refresh', 401] },
  entra: { quirks: quirksOf.entra, lacks: ['revocation_endpoint'] },
  gitlab: { quirks: quirksOf.gitlab, lacks: ['end_session_endpoint'], dual: ['refresh', 502] },
  google: { quirks: quirksOf.google, lacks: ['end_session_endpoint'] },
  hydra: { quirks: quirksOf.hydra, dual: ['login', 502] },
  keycloak: { quirks: quirksOf.keycloak },
  okta: { quirks: quirksOf.okta },
  zitadel: { quirks: quirksOf.zitadel }
}

const folder = new URL('../../docs/reference/providers/', import.meta.url)

/** Returns the settings about the provider that a guide tells to copy, except those of one installation. */
async function settingsOf(guide: string): Promise<Record<string, string>> {
  const [, block = ''] = /```sh\n(.*?)```/s.exec(await readFile(new URL(`${guide}.md`, folder), 'utf8')) ?? []
  const all = block
    .replaceAll('https://app.example.com', publicOrigin)
    .trim()
    .split('\n')
    .map(line => line.split(/=(.*)/s).slice(0, 2) as [string, string])
  const ofProvider = /^PLATFORM_(SCOPES|AUTHORIZATION_PARAMS|LOGOUT_PARAMS|AUTH_LOGOUT_IDP)$/
  return Object.fromEntries(all.filter(([name]) => ofProvider.test(name)))
}

const valuesOf = (list: string | undefined) => list?.split(' ')
const paramsOf = (list: string | undefined) =>
  list === undefined ? undefined : Object.fromEntries(new URLSearchParams(list))

function prepare(idp: HostileIdp, { quirks, lacks = [] }: Guide): void {
  idp.settings.quirks = quirks
  idp.discovery = document => ({ ...document, ...Object.fromEntries(lacks.map(name => [name, undefined])) })
}

test('each guide has a stand-in', async t => {
  const pages = (await readdir(folder)).filter(name => name !== 'README.md').map(name => name.replace('.md', ''))
  t.deepEqual(Object.keys(guides).sort(), pages.sort())
})

for (const [name, guide] of Object.entries(guides)) {
  for (const mode of modes) {
    test(`${name}, ${mode}: a login, three expiries and a logout`, async t => {
      const copied = await settingsOf(name)
      const scopes = valuesOf(copied.PLATFORM_SCOPES) ?? ['data:read']
      const logout = { revoke: true, idp: copied.PLATFORM_AUTH_LOGOUT_IDP === 'true' }
      const platform = {
        scopes,
        internalTokenScopes: [...new Set([...scopes, 'data:read', 'viewables:read'])],
        publicTokenScopes: ['viewables:read'],
        authorizationParams: paramsOf(copied.PLATFORM_AUTHORIZATION_PARAMS),
        logoutParams: paramsOf(copied.PLATFORM_LOGOUT_PARAMS)
      }
      const server = await startDiscovered(t, { mode, settings: { logout, platform } })
      const { browser, idp } = server
      prepare(idp, guide)
      const [fault, status] = (mode === 'dual' && guide.dual) || [undefined, 0]
      const login = await openCallback(browser, await startLogin(browser))
      t.is(login.statusCode, fault === 'login' ? status : 302)
      if (fault === 'login') return
      for (let expiry = 0; expiry < 3; expiry++) {
        const before = idp.tokenRequests.length
        const response = await afterAnHour(server)
        t.is(response.statusCode, fault === 'refresh' ? status : 200)
        if (fault === 'refresh') return
        t.is(idp.tokenRequests.length - before, mode === 'dual' ? 2 : 1)
      }
      t.deepEqual(idp.reuses, [])
      const { location = '' } = (await browser.navigate('/api/auth/logout')).headers
      t.is(location.startsWith(idp.endSessionEndpoint), logout.idp && !guide.lacks?.includes('end_session_endpoint'))
      if (location.startsWith(idp.endSessionEndpoint)) {
        const atProvider = await browser.navigate(location)
        t.is(atProvider.headers.location, `${publicOrigin}/`)
      }
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 401)
    })
  }

  test(`${name}: check finds no fault`, async t => {
    const copied = await settingsOf(name)
    const { code, lines } = await checkAt(t, {
      discovery: () => Object.fromEntries((guide.lacks ?? []).map(member => [member, undefined])),
      provider: () => ({ quirks: guide.quirks }),
      env: () => ({ ...(name === 'aps' ? { PLATFORM_SCOPES: 'data:read' } : {}), ...copied })
    })
    t.deepEqual([code, lines.filter(line => line.startsWith('failed'))], [0, []])
  })
}
