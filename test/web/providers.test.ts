// Each guide of docs/reference/providers, with the settings that it tells to copy, at a stand-in that answers as the documents of the
// provider say: a login, three expiries, a logout and `check`.
import { readdir } from 'node:fs/promises'
import test from 'ava'
import { checkAt } from '../cli/check/checked.js'
import { publicOrigin } from '../helpers/config.js'
import { modes } from '../helpers/modes.js'
import { copiedLines, guides, imitate } from '../helpers/provider-guides.js'
import { openCallback, startLogin } from '../helpers/server.js'
import { afterAnHour, startDiscovered } from './support.js'

const folder = new URL('../../docs/reference/providers/', import.meta.url)

/** Returns the settings about the provider that a guide tells to copy, except those of one installation. */
function settingsOf(guide: string): Record<string, string> {
  const all = copiedLines(guide).map(
    line => line.replaceAll('https://app.example.com', publicOrigin).split(/=(.*)/s).slice(0, 2) as [string, string]
  )
  const ofProvider = /^PLATFORM_(SCOPES|AUTHORIZATION_PARAMS|LOGOUT_PARAMS|AUTH_LOGOUT_(IDP|REVOKE))$/
  return Object.fromEntries(all.filter(([name]) => ofProvider.test(name)))
}

const valuesOf = (list: string | undefined) => list?.split(' ')
const paramsOf = (list: string | undefined) =>
  list === undefined ? undefined : Object.fromEntries(new URLSearchParams(list))

test('each guide has a stand-in', async t => {
  const pages = (await readdir(folder)).filter(name => name !== 'README.md').map(name => name.replace('.md', ''))
  t.deepEqual(Object.keys(guides).sort(), pages.sort())
})

for (const [name, guide] of Object.entries(guides)) {
  for (const mode of modes) {
    test(`${name}, ${mode}: a login, three expiries and a logout`, async t => {
      const copied = settingsOf(name)
      const scopes = valuesOf(copied.PLATFORM_SCOPES) ?? ['data:read']
      const logout = {
        revoke: copied.PLATFORM_AUTH_LOGOUT_REVOKE !== 'false',
        idp: copied.PLATFORM_AUTH_LOGOUT_IDP === 'true'
      }
      const platform = {
        scopes,
        internalTokenScopes: [...new Set([...scopes, 'data:read', 'viewables:read'])],
        publicTokenScopes: ['viewables:read'],
        authorizationParams: paramsOf(copied.PLATFORM_AUTHORIZATION_PARAMS),
        logoutParams: paramsOf(copied.PLATFORM_LOGOUT_PARAMS)
      }
      const server = await startDiscovered(t, { mode, settings: { logout, platform } })
      const { browser, idp } = server
      imitate(idp, guide)
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

  test(`${name}: check finds no fault, and no missing revocation endpoint`, async t => {
    const copied = settingsOf(name)
    const { code, lines } = await checkAt(t, {
      discovery: () => Object.fromEntries((guide.lacks ?? []).map(member => [member, undefined])),
      provider: () => ({ quirks: guide.quirks }),
      env: () => ({ ...(name === 'aps' ? { PLATFORM_SCOPES: 'data:read' } : {}), ...copied })
    })
    t.deepEqual([code, lines.filter(line => /^failed|no usable revocation endpoint/.test(line))], [0, []])
  })
}
