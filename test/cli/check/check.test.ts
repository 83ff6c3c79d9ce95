import test from 'ava'
import { openProvider } from '#src/cli/check/provider.js'
import { checkScopes, checkWwwroot } from '#src/cli/check/settings.js'
import { testConfig } from '../../helpers/config.js'
import { createHostileIdp } from '../../helpers/hostile-idp/index.js'
import { modes } from '../../helpers/modes.js'
import { freePort } from '../../helpers/ports.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { run } from '../shell.js'
import { check, checkAt, discovering, settingsFor, someProvider } from './checked.js'

const dualModeFinding =
  'ok refresh Dual mode needs a provider where a refresh can request only the public scopes, and the next refresh can request all scopes again. Only a login can test that.'

for (const mode of modes) {
  test(`check finds no problem in a demo in ${mode} mode`, async t => {
    const { code, errors, lines } = await check(t, ['--demo', '--mode', mode, '--port', `${await freePort()}`], {
      env: {}
    })
    t.is(errors, '')
    const said = lines.map(line =>
      line
        .replace(/:\d{4,5}/g, ':PORT')
        .replace(/Port \d+/, 'Port N')
        .replace(/\S+index\.html/, 'PAGE')
    )
    t.deepEqual(said, [
      'ok settings The settings are valid (without a settings file).',
      'ok callback Register exactly http://localhost:PORT/api/auth/callback with the provider. Users open http://localhost:PORT/.',
      mode === 'dual'
        ? 'ok scopes Pages get viewables:read, which is less than the server has (data:read viewables:read).'
        : 'ok scopes The token (data:read account:read account:write) stays on the server.',
      'ok port Port N is free.',
      'ok wwwroot PAGE is the start page.',
      'ok redis No Redis is configured. One process needs none, but several replicas need redis.url.',
      'ok proxy http://127.0.0.1:PORT accepts connections.',
      'ok endpoints The discovery document of http://127.0.0.1:PORT contains the endpoints.',
      'ok login The authorization endpoint accepts this login (303).',
      'ok client The client id and secret work. The token endpoint rejected only the made-up code (invalid_grant).',
      'ok userinfo The user info endpoint rejects a made-up token, as it should (401).',
      ...(mode === 'dual' ? [dualModeFinding] : []),
      'ok logout The revocation endpoint accepts requests.',
      "ok clock This machine's clock agrees with the provider's."
    ])
    t.is(code, 0)
  })
}

for (const [host, home] of [
  ['0.0.0.0', 'http://localhost'],
  ['127.0.0.1', 'http://127.0.0.1']
]) {
  test(`check uses the address that a demo on ${host} will announce`, async t => {
    const { code, lines, line } = await check(t, ['--demo', '--port', '0', '--host', String(host)], { env: {} })
    t.true(line('callback')?.includes(`Users open ${home}:`), line('callback'))
    const others = lines.filter(found => !found.startsWith('ok '))
    t.deepEqual(others, [])
    t.is(code, 0)
  })
}

test('check reports a host of another machine together with its other findings', async t => {
  const { code, lines, line } = await check(t, ['--demo', '--port', '0', '--host', '192.0.2.1'], { env: {} })
  t.is(code, 1)
  t.regex(line('port') ?? '', /^failed port /)
  t.true(lines.length > 5)
})

test('a failed finding makes the exit code 1, and a warning leaves it 0', async t => {
  const right = await checkAt(t)
  t.is(right.code, 0)
  t.regex(right.summary, /^\d+ ok, [1-9]\d* warnings?, 0 failed\. The server can run, but read the warnings first\.$/)
  const wrong = await checkAt(t, { env: () => ({ PLATFORM_CLIENT_SECRET: 'wrong' }) })
  t.is(wrong.code, 1)
  t.regex(wrong.summary, /, [1-9] failed\. Fix the failed findings, then run check again\.$/)
})

test('check --json prints the findings as JSON', async t => {
  const idp = await createHostileIdp(t)
  const env = { ...discovering(idp), PORT: String(await freePort()), PLATFORM_CLIENT_SECRET: 'wrong' }
  const { code, output, errors } = await run(t, ['check', '--json'], { env })
  t.is(code, 1)
  t.is(errors, '')
  const { ok, findings } = JSON.parse(output)
  t.false(ok)
  const found = findings.find((finding: { check: string }) => finding.check === 'client')
  t.deepEqual(Object.keys(found), ['check', 'status', 'message', 'next'])
  t.is(found.status, 'failed')
  for (const { check, status, message, next } of findings) {
    t.regex(check, /^[a-z]+$/)
    t.true(['ok', 'warning', 'failed'].includes(status))
    t.regex(message, /\.$/)
    t.is(next === undefined, status === 'ok')
  }
})

test('wrong settings are reported as findings with exit code 2, and no request is sent', async t => {
  const idp = await createHostileIdp(t)
  const env = { ...settingsFor(idp), PORT: 'x', SERVER_SESSION_SECRET: 'hunter2', PLATFORM_AUTH_MOD: 'dual' }
  const { code, output, errors, lines } = await check(t, [], { env })
  t.deepEqual([code, errors], [2, ''])
  t.is(lines.length, 3)
  t.regex(lines[0] ?? '', /^failed settings port \(variable PORT\) cannot be the string "x"\. .*\.$/)
  t.regex(
    lines[1] ?? '',
    /^failed settings session\.secret \(variable SERVER_SESSION_SECRET\) cannot be used, because /
  )
  t.regex(
    lines[2] ?? '',
    /^warning settings PLATFORM_AUTH_MOD .*PLATFORM_AUTH_MODE\? Next: Change this setting, unless its value is intended\.$/
  )
  t.false(output.includes('hunter2'))
  t.is(idp.requests.length, 0)
  const json = await run(t, ['check', '--json'], { env })
  t.is(json.code, 2)
  t.false(JSON.parse(json.output).ok)
})

test('a wrong command line is an error and not a finding', async t => {
  const { code, output, errors } = await run(t, ['check', '--json=1'])
  t.deepEqual([code, output, errors], [2, '', '--json takes no value.\n'])
})

test('check reports warnings about settings as findings, for public scopes equal to the internal ones and for plain http on another machine', async t => {
  const { lines } = await checkAt(t, {
    args: ['--mode', 'dual', '--public-token-scopes', 'data:read viewables:read'],
    env: () => ({ PLATFORM_CALLBACK_URL: 'http://app.example/api/auth/callback' })
  })
  const warnings = lines.filter(line => line.startsWith('warning settings'))
  t.deepEqual(warnings, [
    'warning settings platform.publicTokenScopes (flag --public-token-scopes) has the same scopes as platform.internalTokenScopes, so pages have the same access as the server. Next: Change this setting, unless its value is intended.',
    'warning settings platform.callbackUrl (variable PLATFORM_CALLBACK_URL) uses plain http on another machine, so others on the network can read codes and cookies, and browsers reject __Host- cookies. Use https. Next: Change this setting, unless its value is intended.'
  ])
  t.false(lines.some(line => line.startsWith('ok scopes')))
})

test('check warns about public scopes that allow changes', t => {
  const config = testConfig(someProvider, {
    mode: 'dual',
    platform: {
      internalTokenScopes: ['data:read', 'data:write', 'bucket:delete'],
      publicTokenScopes: ['data:read', 'data:write']
    }
  })
  const provider = openProvider(config, Date.now)
  t.teardown(() => provider.transport.close())
  t.deepEqual(checkScopes(config, provider.mode), [
    {
      status: 'warning',
      message: 'Every script in your pages has the public token, which allows changes (data:write).',
      next: 'Put such scopes only into platform.internalTokenScopes.'
    }
  ])
})

test('check warns about a folder without a start page', async t => {
  const folder = await tempFolder(t, { 'app.html': '' })
  t.deepEqual(await checkWwwroot(testConfig(someProvider, { wwwroot: folder })), [
    {
      status: 'warning',
      message: `${folder}/index.html cannot be read, so users get a 404 response after signing in.`,
      next: 'Create this file, or set wwwroot to the folder of your pages.'
    }
  ])
})

test('check reports that the starter page is served if no folder is set', async t => {
  t.deepEqual(await checkWwwroot(testConfig(someProvider)), [
    { status: 'ok', message: 'No folder is set, so the built-in starter page is served.' }
  ])
})

test('check fails for NODE_TLS_REJECT_UNAUTHORIZED=0, which disables the verification of certificates', async t => {
  const { line, code } = await checkAt(t, { env: () => ({ NODE_TLS_REJECT_UNAUTHORIZED: '0' }) })
  t.is(
    line('tls'),
    'failed tls NODE_TLS_REJECT_UNAUTHORIZED=0 disables the verification of TLS certificates, so others on the network can read the client secret and the tokens. Next: Remove it. To trust a private certificate authority, set NODE_EXTRA_CA_CERTS.'
  )
  t.is(code, 1)
})

test('check shows the path of the settings file that was read', async t => {
  const idp = await createHostileIdp(t)
  const { lines } = await check(t, [], {
    env: settingsFor(idp),
    files: { '.platform-auth-serverrc.json': '{"logout":{"revoke":false}}', 'wwwroot/index.html': '' }
  })
  t.regex(lines[0] ?? '', /^ok settings The settings are valid \(with the file \S+\.platform-auth-serverrc\.json\)\.$/)
})

test('check imports a module with routes and fails for one without a function as its default export', async t => {
  const files = { 'good.mjs': 'export default () => {}', 'bad.mjs': 'export const routes = 1' }
  const good = await check(t, ['--demo', '--port', '0', '--extension', 'good.mjs'], { files })
  t.regex(good.line('extension') ?? '', /^ok extension \S+good\.mjs exports a function/)
  const bad = await check(t, ['--demo', '--port', '0', '--extension', 'bad.mjs'], { files })
  t.regex(bad.line('extension') ?? '', /^failed extension \S+bad\.mjs .* has no function as its default export/)
  t.is(bad.code, 1)
})
