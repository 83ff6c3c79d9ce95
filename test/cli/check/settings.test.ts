import { createServer as createTlsServer } from 'node:tls'
import test from 'ava'
import { openProvider } from '#src/cli/check/provider.js'
import { checkFiles, checkProxy, checkScopes, checkWwwroot } from '#src/cli/check/settings.js'
import { selfSignedCertificate } from '../../helpers/certificate.js'
import { type TestSettings, testConfig, unreachableIdp } from '../../helpers/config.js'
import { listen } from '../../helpers/ports.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { startUpstream } from '../../helpers/upstream.js'
import { areFindings, checkAt, isFinding, someProvider } from './checked.js'

const config = (rules: readonly string[], more: TestSettings = {}) =>
  testConfig(unreachableIdp, { apiProxy: { rules }, ...more })

test('check connects once to each target host of the proxy rules', async t => {
  const upstream = await startUpstream(t)
  let connections = 0
  upstream.server.on('connection', () => {
    connections += 1
  })
  const findings = await checkProxy(config([`GET /a ${upstream.origin}/a`, `GET /b ${upstream.origin}/b`]))
  areFindings(t, findings, [`ok ${upstream.origin} accepts`])
  t.is(connections, 1)
  t.deepEqual(await checkProxy(config([])), [])
})

test('check fails for a target host that cannot be reached or whose certificate is not trusted', async t => {
  const port = await listen(
    t,
    createTlsServer(selfSignedCertificate(), socket => socket.end())
  )
  // No test listens on port 1. The port of a server that was closed could already belong to another test.
  const origins = ['http://127.0.0.1:1', 'https://nowhere.invalid', `https://localhost:${port}`]
  areFindings(t, await checkProxy(config(origins.map((origin, index) => `GET /${index} ${origin}/a`))), [
    'failed refuses ECONNREFUSED → apiProxy.rules',
    'failed nowhere.invalid',
    'failed does not trust certificate'
  ])
})

test.serial('check names a proxy that cannot be reached or used, and not the target behind it', async t => {
  const before = { ...process.env }
  t.teardown(() => {
    process.env = before
  })
  for (const [proxy, expected] of [
    ['http://user:hunter2@127.0.0.1:1', 'failed The proxy 127.0.0.1:1 refuses ECONNREFUSED → HTTPS_PROXY'],
    ['ftp://user:hunter2@127.0.0.1:1', 'failed The proxy ftp only http → HTTPS_PROXY']
  ] as const) {
    process.env = { HTTPS_PROXY: proxy }
    const findings = await checkProxy(config(['GET /a https://target.example/a']))
    areFindings(t, findings, [expected])
    t.notRegex(JSON.stringify(findings), /hunter2|PROXY_NOT_HTTP|target\.example/)
  }
})

const aps = 'https://developer.api.autodesk.com'

test('check warns about a rule whose API needs scopes that the token does not have', async t => {
  const warnings = async (routes: readonly string[], more: TestSettings) =>
    (await checkProxy(config(routes, more))).filter(({ status }) => status === 'warning')
  const issues = `GET,POST /api/issues/* ${aps}/construction/issues/v1/projects/*`
  const derivatives = `GET /viewer/** ${aps}/modelderivative/v2/** token=public`
  const dual = { mode: 'dual' } as const
  areFindings(t, await warnings([issues, derivatives], dual), ['warning POST data:write data:read viewables:read'])
  const platform = { internalTokenScopes: ['data:read', 'data:write', 'viewables:read'] }
  t.deepEqual(await warnings([issues, derivatives], { ...dual, platform }), [])
  t.is((await warnings([`GET /hubs ${aps}/project/v1/hubs token=public`], dual)).length, 1)
  t.deepEqual(await warnings(['POST /x https://elsewhere.example/construction/issues/v1/x'], dual), [])
})

test('check warns about public scopes that allow changes', t => {
  const scopes = testConfig(someProvider, {
    mode: 'dual',
    platform: {
      internalTokenScopes: ['data:read', 'data:write', 'bucket:delete'],
      publicTokenScopes: ['data:read', 'data:write']
    }
  })
  const provider = openProvider(scopes, Date.now)
  t.teardown(() => provider.transport.close())
  areFindings(t, checkScopes(scopes, provider.mode), [
    'warning public changes (data:write) → platform.internalTokenScopes'
  ])
})

test('check warns about a folder without a start page, and says that the starter page is served without a folder', async t => {
  const wwwroot = await tempFolder(t, { 'app.html': '' })
  areFindings(t, [await checkWwwroot(testConfig(someProvider, { wwwroot }))].flat(), [
    `warning ${wwwroot}/index.html 404 → wwwroot`
  ])
  areFindings(t, [await checkWwwroot(testConfig(someProvider))].flat(), ['ok starter page'])
})

test('check names the files that everyone can read', async t => {
  const names = ['index.html', 'a.html', 'b.html', 'c.html', 'd.html', 'welcome/a.css', 'reports/a.html', '.env']
  const wwwroot = await tempFolder(t, Object.fromEntries(names.map(name => [name, ''])))
  for (const [patterns, expected] of [
    ['/reports/**', 'ok 1 of 7 a.html, b.html, c.html, d.html, index.html 1 more'],
    ['!/welcome/** /**', 'ok 6 of 7 welcome/a.css'],
    ['/**', 'ok 7 of 7 none']
  ] as const)
    areFindings(t, await checkFiles(config([], { wwwroot, access: { files: patterns.split(' ') } })), [expected])
  t.deepEqual(await checkFiles(config([])), [])
})

test('check warns about what an access list needs from the provider', async t => {
  const findingFor = async (allow: string) => {
    const { found } = await checkAt(t, { env: () => ({ PLATFORM_AUTH_ACCESS_ALLOW: allow }) })
    return found('access')
  }
  isFinding(
    t,
    await findingFor('@team.example'),
    'warning email_verified no user can sign in refresh without an ID token'
  )
  isFinding(
    t,
    await findingFor('groups=admins groups=editors realm_access.roles=owner'),
    'warning groups=admins groups=editors realm_access.roles=owner groups or realm_access.roles, no user can sign in'
  )
  t.is((await checkAt(t)).found('access'), undefined)
})
