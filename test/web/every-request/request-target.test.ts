// The four forms of a request target (RFC 9112 section 3.2), and targets that only resemble them.
import test from 'ava'
import { assertCases } from '../../helpers/case-file.js'
import { askRaw } from '../../helpers/raw.js'
import { startTestServer } from '../../helpers/server.js'
import { parameter, sessionHeader, startSignedIn, warningIn } from '../support.js'

for (const requests of [true, false]) {
  test(`any request target gets a response and does not end the process, with the request log ${requests ? 'on' : 'off'}`, async t => {
    const settings = { log: { requests }, metrics: { address: '127.0.0.1:0' } }
    const { server, logs } = await startTestServer(t, { settings })
    await assertCases(t, 'test/web/every-request/request-targets.txt', async target =>
      String((await askRaw(server.port, target)).statusCode)
    )
    t.is((await askRaw(server.port, '/healthz')).statusCode, 200)
    t.is(warningIn(logs), undefined)
  })
}

test('a request target that is a whole URL reaches the same routes, and its host has no effect', async t => {
  const { browser, server, idp, config } = await startSignedIn(t)
  const cookie = `Cookie: ${sessionHeader(browser)}\r\n`
  const profile = await askRaw(server.port, 'http://elsewhere.example/api/auth/profile', cookie)
  t.deepEqual(JSON.parse(profile.text), { name: 'Ada Lovelace' })
  const login = await askRaw(server.port, 'http://elsewhere.example/api/auth/login?return_to=/page')
  t.true(login.header('location')?.startsWith(`${idp.authorizationEndpoint}?`))
  t.is(parameter(login.header('location'), 'redirect_uri'), config.platform.callbackUrl)
  t.false(login.head.includes('elsewhere'))
})

test('the request log has the requested path without host, query and fragment', async t => {
  const { server, logs } = await startTestServer(t)
  for (const target of ['http://user:pass@host/one?code=1', '/two?code=2', '/three#code', '//four/five?code=3', '*']) {
    await askRaw(server.port, target)
  }
  const paths = logs.all('request').map(({ path }) => path)
  t.deepEqual(paths, ['/one', '/two', '/three', '/%2Ffour/five', '*'])
})
