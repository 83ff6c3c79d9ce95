import test from 'ava'
import { areFindings, check, checkAt, isFinding } from './checked.js'

test('check reports a host of another machine together with its other findings', async t => {
  const { code, lines, found } = await check(t, ['--demo', '--port', '0', '--host', '192.0.2.1'], { env: {} })
  t.is(code, 1)
  isFinding(t, found('port'), 'failed')
  t.true(lines.length > 5)
})

test('a failed finding makes the exit code 1, and a warning leaves it 0', async t => {
  const right = await checkAt(t)
  t.is(right.code, 0, right.output)
  t.regex(right.summary, /^\d+ ok, [1-9]\d* warnings?, 0 failed\./)
  const wrong = await checkAt(t, { env: () => ({ PLATFORM_CLIENT_SECRET: 'wrong' }) })
  t.is(wrong.code, 1)
  t.regex(wrong.summary, /, [1-9] failed\./)
})

test('check --json prints the findings as JSON', async t => {
  const env = () => ({ PLATFORM_CLIENT_SECRET: 'wrong' })
  const { code, output, errors } = await checkAt(t, { args: ['--json'], env })
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
  const env = () => ({ PORT: 'x', SERVER_SESSION_SECRET: 'hunter2', PLATFORM_AUTH_MOD: 'dual' })
  const { code, output, errors, lines, allOf, idp } = await checkAt(t, { env })
  t.deepEqual([code, errors], [2, ''])
  areFindings(t, allOf('settings'), [
    'failed port PORT "x"',
    'failed session.secret SERVER_SESSION_SECRET',
    'warning PLATFORM_AUTH_MOD PLATFORM_AUTH_MODE?'
  ])
  t.is(lines.length, 3)
  t.false(output.includes('hunter2'))
  t.is(idp.requests.length, 0)
  const json = await checkAt(t, { args: ['--json'], env })
  t.is(json.code, 2)
  t.false(JSON.parse(json.output).ok)
})

test('check reports warnings about settings as findings, for public scopes equal to the internal ones and for plain http on another machine', async t => {
  const { allOf } = await checkAt(t, {
    args: ['--mode', 'dual', '--public-token-scopes', 'data:read viewables:read'],
    env: () => ({ PLATFORM_CALLBACK_URL: 'http://app.example/api/auth/callback' })
  })
  areFindings(t, allOf('settings').slice(1), [
    'warning platform.publicTokenScopes --public-token-scopes same platform.internalTokenScopes → unless intended',
    'warning platform.callbackUrl PLATFORM_CALLBACK_URL plain http cookies'
  ])
  t.false(allOf('scopes').some(({ status }) => status === 'ok'))
})

test('check fails for NODE_TLS_REJECT_UNAUTHORIZED=0, which disables the verification of certificates', async t => {
  const { found, code } = await checkAt(t, { env: () => ({ NODE_TLS_REJECT_UNAUTHORIZED: '0' }) })
  isFinding(t, found('tls'), 'failed NODE_TLS_REJECT_UNAUTHORIZED=0 disables → Remove NODE_EXTRA_CA_CERTS')
  t.is(code, 1)
})

test('check shows the path of the settings file that was read', async t => {
  const { found } = await checkAt(t, { files: { '.platform-auth-serverrc.json': '{"logout":{"revoke":false}}' } })
  isFinding(t, found('settings'), 'ok valid .platform-auth-serverrc.json')
})

test('check imports a module with routes and fails for one without a function as its default export', async t => {
  const files = { 'good.mjs': 'export default () => {}', 'bad.mjs': 'export const routes = 1' }
  const good = await check(t, ['--demo', '--port', '0', '--extension', 'good.mjs'], { files })
  isFinding(t, good.found('extension'), 'ok good.mjs exports function')
  const bad = await check(t, ['--demo', '--port', '0', '--extension', 'bad.mjs'], { files })
  isFinding(t, bad.found('extension'), 'failed bad.mjs no function default export')
  t.is(bad.code, 1)
})
