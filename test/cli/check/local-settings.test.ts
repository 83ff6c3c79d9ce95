import { createServer as createTlsServer } from 'node:tls'
import test from 'ava'
import { openProvider } from '#src/cli/check/endpoints-and-clock.js'
import type { Finding } from '#src/cli/check/findings.js'
import { checkFiles, checkProxy, checkScopes, checkWwwroot } from '#src/cli/check/local-settings.js'
import { selfSignedCertificate } from '../../helpers/certificate.js'
import { type TestSettings, testConfig, unreachableIdp } from '../../helpers/config.js'
import { listen } from '../../helpers/ports.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { startUpstream } from '../../helpers/upstream.js'
import { isGolden, someProvider, testFindings } from './checked.js'

const config = (rules: readonly string[], more: TestSettings = {}) =>
  testConfig(unreachableIdp, { apiProxy: { rules }, ...more })

test('proxy: check connects once to each target host of the proxy rules', async t => {
  const upstream = await startUpstream(t)
  let connections = 0
  upstream.server.on('connection', () => {
    connections += 1
  })
  isGolden(t, await checkProxy(config([`GET /a ${upstream.origin}/a`, `GET /b ${upstream.origin}/b`])))
  t.is(connections, 1)
  t.deepEqual(await checkProxy(config([])), [])
})

test('proxy: a target that cannot be reached, or whose certificate is not trusted', async t => {
  const port = await listen(
    t,
    createTlsServer(selfSignedCertificate(), socket => socket.end())
  )
  // No test listens on port 1. The port of a server that was closed could already belong to another test.
  const origins = ['http://127.0.0.1:1', 'http://[::1]:1', 'https://nowhere.invalid', `https://localhost:${port}`]
  isGolden(t, await checkProxy(config(origins.map((origin, index) => `GET /${index} ${origin}/a`))), {
    EAI_AGAIN: 'ENOTFOUND',
    'DNS did not respond to the query for': 'DNS does not know the name of',
    'Check the DNS servers of this machine or container.':
      'Check the name in apiProxy.rules, and whether this machine can resolve other names.'
  })
})

test.serial('proxy: check names a proxy that cannot be reached or used, and not the target behind it', async t => {
  const before = { ...process.env }
  t.teardown(() => {
    process.env = before
  })
  const findings: Finding[] = []
  for (const proxy of ['http://user:hunter2@127.0.0.1:1', 'ftp://user:hunter2@127.0.0.1:1']) {
    process.env = { HTTPS_PROXY: proxy }
    findings.push(...(await checkProxy(config(['GET /a https://target.example/a']))))
  }
  t.notRegex(JSON.stringify(findings), /hunter2|PROXY_NOT_HTTP|target\.example/)
  isGolden(t, findings)
})

test('scopes: public scopes that allow changes', t => {
  const scopes = testConfig(someProvider, {
    mode: 'dual',
    platform: {
      internalTokenScopes: ['data:read', 'data:write', 'bucket:delete'],
      publicTokenScopes: ['data:read', 'data:write']
    }
  })
  const provider = openProvider(scopes, Date.now)
  t.teardown(() => provider.transport.close())
  isGolden(t, [...checkScopes(scopes, provider.mode)])
})

test('wwwroot: a folder without a start page, and no folder', async t => {
  const wwwroot = await tempFolder(t, { 'app.html': '' })
  isGolden(t, [await checkWwwroot(testConfig(someProvider, { wwwroot })), await checkWwwroot(testConfig(someProvider))])
})

test('access: the files that everyone can read', async t => {
  const names = ['index.html', 'a.html', 'b.html', 'c.html', 'd.html', 'welcome/a.css', 'reports/a.html', '.env']
  const wwwroot = await tempFolder(t, Object.fromEntries(names.map(name => [name, ''])))
  const patterns = ['/reports/**', '!/welcome/** /**', '/**']
  const findings = patterns.map(files => checkFiles(config([], { wwwroot, access: { files: files.split(' ') } })))
  isGolden(t, (await Promise.all(findings)).flat(), { ' index.html': ' INDEX' })
  t.deepEqual(await checkFiles(config([])), [])
})

testFindings('access', {
  'an access list of addresses': { env: () => ({ PLATFORM_AUTH_ACCESS_ALLOW: '@team.example' }) },
  'an access list of claims': {
    env: () => ({ PLATFORM_AUTH_ACCESS_ALLOW: 'groups=admins groups=editors realm_access.roles=owner' })
  },
  'no access list': {}
})
