import { createServer as createTlsServer } from 'node:tls'
import test from 'ava'
import { checkFiles, checkProxy } from '#src/cli/check/settings.js'
import { selfSignedCertificate } from '../../helpers/certificate.js'
import { type TestSettings, testConfig, unreachableIdp } from '../../helpers/config.js'
import { listen } from '../../helpers/ports.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { startUpstream } from '../../helpers/upstream.js'
import { checkAt } from './checked.js'

const config = (rules: readonly string[], more: TestSettings = {}) =>
  testConfig(unreachableIdp, { apiProxy: { rules }, ...more })

test('check reports no proxy finding if there are no proxy rules', async t => {
  t.deepEqual(await checkProxy(config([])), [])
})

test('check connects once to each target host', async t => {
  const upstream = await startUpstream(t)
  let connections = 0
  upstream.server.on('connection', () => {
    connections += 1
  })
  const findings = await checkProxy(config([`GET /a ${upstream.origin}/a`, `GET /b ${upstream.origin}/b`]))
  t.deepEqual(findings, [{ status: 'ok', message: `${upstream.origin} accepts connections.` }])
  t.is(connections, 1)
})

test('check fails for a target host that cannot be reached, and shows the reason', async t => {
  // No test listens on port 1. The port of a server that was closed could already belong to another test.
  const [refused, unknown] = await checkProxy(
    config(['GET /a http://127.0.0.1:1/a', 'GET /b https://nowhere.invalid/b'])
  )
  t.is(refused?.status, 'failed')
  t.regex(refused?.message ?? '', /refuses connections \(ECONNREFUSED\)/)
  t.regex(unknown?.message ?? '', /nowhere\.invalid/)
  t.regex(`${refused?.next} ${unknown?.next}`, /apiProxy\.rules/)
})

test('check fails for a target host with an untrusted certificate', async t => {
  const certificate = selfSignedCertificate()
  const port = await listen(
    t,
    createTlsServer(certificate, socket => socket.end())
  )
  const rules = [`GET /a https://localhost:${port}/a`]
  const [untrusted] = await checkProxy(config(rules))
  t.is(untrusted?.status, 'failed')
  t.regex(untrusted?.message ?? '', /does not trust the certificate/)
})

const aps = 'https://developer.api.autodesk.com'

test('check warns about a rule whose API needs scopes that the token does not have', async t => {
  const warnings = async (routes: readonly string[], more: TestSettings) =>
    (await checkProxy(config(routes, more))).filter(({ status }) => status === 'warning').map(({ message }) => message)
  const issues = `GET,POST /api/issues/* ${aps}/construction/issues/v1/projects/*`
  const derivatives = `GET /viewer/** ${aps}/modelderivative/v2/** token=public`
  const dual = { mode: 'dual' } as const
  const [message = '', ...others] = await warnings([issues, derivatives], dual)
  t.deepEqual(others, [])
  t.regex(message, /cannot work for POST. The API requires data:write, but the token has data:read viewables:read/)
  const platform = { internalTokenScopes: ['data:read', 'data:write', 'viewables:read'] }
  t.deepEqual(await warnings([issues, derivatives], { ...dual, platform }), [])
  t.is((await warnings([`GET /hubs ${aps}/project/v1/hubs token=public`], dual)).length, 1)
  t.deepEqual(await warnings(['POST /x https://elsewhere.example/construction/issues/v1/x'], dual), [])
})

test('check warns that an access list needs verified email addresses', async t => {
  const { line, code } = await checkAt(t, { env: () => ({ PLATFORM_AUTH_ACCESS_ALLOW: '@team.example' }) })
  t.regex(line('access') ?? '', /^warning access .*does not send email_verified, no user can sign in/)
  t.is(code, 0)
})

test('check names the claims that an access list needs', async t => {
  const allow = 'groups=admins groups=editors realm_access.roles=owner'
  const { line } = await checkAt(t, { env: () => ({ PLATFORM_AUTH_ACCESS_ALLOW: allow }) })
  t.regex(line('access') ?? '', /has groups=admins or groups=editors or realm_access\.roles=owner\. /)
  t.regex(line('access') ?? '', /does not send groups or realm_access\.roles, no user can sign in/)
})

test('check names the files that everyone can read', async t => {
  const names = ['index.html', 'a.html', 'b.html', 'c.html', 'd.html', 'welcome/a.css', 'reports/a.html', '.env']
  const wwwroot = await tempFolder(t, Object.fromEntries(names.map(name => [name, ''])))
  const messagesFor = async (patterns: string) =>
    (await checkFiles(config([], { wwwroot, access: { files: patterns.split(' ') } }))).map(({ message }) => message)
  t.deepEqual(await messagesFor('/reports/**'), [
    'access.files protects 1 of 7 files. Public are: a.html, b.html, c.html, d.html, index.html and 1 more.'
  ])
  t.deepEqual(await messagesFor('!/welcome/** /**'), ['access.files protects 6 of 7 files. Public are: welcome/a.css.'])
  t.deepEqual(await messagesFor('/**'), ['access.files protects 7 of 7 files. Public are: none.'])
  t.deepEqual(await checkFiles(config([])), [])
})

test('check reports no access finding if everyone may sign in', async t => {
  const { line } = await checkAt(t)
  t.is(line('access'), undefined)
})
