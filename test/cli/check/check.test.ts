import test from 'ava'
import { defaultCallbackUrl } from '../../helpers/config.js'
import { createHostileIdp, faults, type HostileIdp } from '../../helpers/hostile-idp/index.js'
import { modes } from '../../helpers/modes.js'
import { freePort } from '../../helpers/ports.js'
import { environmentFor } from '../../helpers/program.js'
import { run } from '../shell.js'
import { check, checkAt, fewAtOnce, isGolden, testFindings, usedEndpoints } from './checked.js'

for (const mode of modes) {
  test(`the whole output for a demo in ${mode} mode`, async t => {
    const args = ['check', '--demo', '--mode', mode, '--port', String(await freePort())]
    const { code, output, errors } = await fewAtOnce(() => run(t, args))
    isGolden(t, [output.trimEnd()])
    t.deepEqual([code, errors], [0, ''])
  })
}

test('the whole output for a wrong client secret and a Redis that does not run', async t => {
  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
  const env = {
    ...environmentFor(idp, defaultCallbackUrl),
    PORT: String(await freePort()),
    PLATFORM_CLIENT_SECRET: 'wrong',
    // A revocation has a time limit of 2 s, which a busy machine exceeds.
    PLATFORM_AUTH_LOGOUT_REVOKE: 'false',
    REDIS_URL: 'redis://127.0.0.1:1'
  }
  const { code, output, errors } = await fewAtOnce(() => run(t, ['check'], { env }))
  isGolden(t, [output.trimEnd()])
  t.deepEqual([code, errors], [1, ''])
})

test('check reports a host of another machine together with its other findings', async t => {
  const { code, lines, allOf } = await check(t, ['--demo', '--port', '0', '--host', '192.0.2.1'], { env: {} })
  t.is(code, 1)
  isGolden(t, allOf('port'))
  t.true(lines.length > 5)
})

test('check --json prints the findings as JSON', async t => {
  const env = () => ({ PLATFORM_CLIENT_SECRET: 'wrong' })
  const { code, output, errors } = await checkAt(t, { args: ['--json'], env })
  t.deepEqual([code, errors], [1, ''])
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
  const { code, output, errors, lines, idp } = await checkAt(t, { env })
  t.deepEqual([code, errors], [2, ''])
  t.deepEqual(
    lines.map(line => line.split(' ').slice(0, 3).join(' ')),
    ['failed settings port', 'failed settings session.secret', 'warning settings PLATFORM_AUTH_…']
  )
  t.false(output.includes('hunter2'))
  t.is(idp.requests.length, 0)
  const json = await checkAt(t, { args: ['--json'], env })
  t.is(json.code, 2)
  t.false(JSON.parse(json.output).ok)
})

testFindings('tls', { 'NODE_TLS_REJECT_UNAUTHORIZED=0': { env: () => ({ NODE_TLS_REJECT_UNAUTHORIZED: '0' }) } })

testFindings('settings', {
  'a settings file': { files: { '.platform-auth-serverrc.json': '{"logout":{"revoke":false}}' } },
  'a setting that has no effect': { args: ['--public-token-scopes', 'data:read'] }
})

test('extension: a module with routes, and one without a function as its default export', async t => {
  const files = { 'good.mjs': 'export default () => {}', 'bad.mjs': 'export const routes = 1' }
  const good = await check(t, ['--demo', '--port', '0', '--extension', 'good.mjs'], { files })
  const bad = await check(t, ['--demo', '--port', '0', '--extension', 'bad.mjs'], { files })
  isGolden(t, [...good.allOf('extension'), ...bad.allOf('extension')])
  t.is(bad.code, 1)
})

test('check prints neither a secret nor text from the provider', async t => {
  for (const text of ['<script>alert(1)</script>', '\u001b[31mred', 'eyJhbGciOiJSUzI1NiJ9.secret']) {
    const quoting = faults.answer({ status: 400, body: { error: text, error_description: text, userMessage: text } })
    const prepare = (idp: HostileIdp) => {
      for (const endpoint of usedEndpoints) idp.failWhen(endpoint, () => quoting)
    }
    const { output, idp, allOf } = await checkAt(t, { prepare })
    t.true(allOf('client')[0]?.includes('400'))
    for (const hidden of [text, idp.clientSecret, 'wG4vT9qLx2ZbN7rKp5YcJ8sHd3MfA6eU']) t.false(output.includes(hidden))
  }
})
