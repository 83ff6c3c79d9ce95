// The four forms of a request target (RFC 9112 section 3.2), and targets that only resemble them.
import test from 'ava'
import { sendRaw } from '../../helpers/raw.js'
import { startTestServer } from '../../helpers/server.js'
import { sessionHeader, startSignedIn, warningIn } from '../support.js'

const forms: readonly (readonly [target: string, status: number])[] = [
  ['/healthz', 200],
  ['/healthz?query', 200],
  ['/healthz?http://[', 200],
  ['http://localhost:8080/healthz', 200],
  ['HTTP://LOCALHOST/healthz?query', 200],
  ['https://elsewhere.example/healthz', 200],
  ['http://localhost', 200],
  ['http://localhost/', 200],
  ['http://localhost?query', 200],
  ['ftp://localhost/healthz', 200],
  ['http://localhost/nothing', 404],
  ['*', 404]
]

// Node's url.parse() throws for each of these hosts, or will do so in a later version.
const malformedHosts = ['%@host', '[::1', '[', '*[', 'host:99999', 'host:-1', 'user:%@host', '[::1]:x', '@', '']

const notTargets = [
  'http:',
  'http:/',
  'localhost',
  'localhost:80',
  'a:b',
  'javascript:alert(1)',
  '?query',
  '#fragment',
  '..'
]

const slashes = [
  '//host/path',
  '//',
  '///',
  '//api/auth/profile',
  '//%@host/#',
  '//user@[/#',
  '/\\%@host/#',
  '/\\host',
  '\\\\host'
]

const request = (target: string) => `GET ${target} HTTP/1.1\r\nHost: localhost:8080\r\nConnection: close\r\n\r\n`

for (const requests of [true, false]) {
  test(`any request target gets a response and does not end the process, with the request log ${requests ? 'on' : 'off'}`, async t => {
    const settings = { log: { requests }, metrics: { address: '127.0.0.1:0' } }
    const { server, logs } = await startTestServer(t, { settings })
    const cases = [
      ...forms,
      ...malformedHosts.flatMap(host => [
        [`http://${host}/nothing`, undefined] as const,
        [`http://${host}/healthz#fragment`, undefined] as const
      ]),
      ...notTargets.map(target => [target, 400] as const),
      ...slashes.map(target => [target, undefined] as const)
    ]
    for (const [target, expected] of cases) {
      const { answers } = await sendRaw(server.port, request(target))
      t.is(answers.length, 1, target)
      const status = answers[0]?.statusCode ?? 0
      if (expected === undefined) t.true([200, 400, 404].includes(status), `${target}: ${status}`)
      else t.is(status, expected, target)
    }
    t.is((await sendRaw(server.port, request('/healthz'))).answers[0]?.statusCode, 200)
    t.is(warningIn(logs), undefined)
  })
}

test('a request target that is a whole URL reaches the same routes, and its host has no effect', async t => {
  const { browser, server, idp, config } = await startSignedIn(t)
  const ask = async (target: string, headers = '') => {
    const { answers } = await sendRaw(server.port, request(target).replace('Connection', `${headers}Connection`))
    return { head: answers[0]?.head ?? '', body: String(answers[0]?.body) }
  }
  const profile = await ask('http://elsewhere.example/api/auth/profile', `Cookie: ${sessionHeader(browser)}\r\n`)
  t.deepEqual(JSON.parse(profile.body), { name: 'Ada Lovelace' })
  const { head } = await ask('http://elsewhere.example/api/auth/login?return_to=/page')
  const location = new URL(/^location: (.+)$/im.exec(head)?.[1] ?? '')
  t.is(location.origin + location.pathname, idp.authorizationEndpoint)
  t.is(location.searchParams.get('redirect_uri'), config.platform.callbackUrl)
  t.false(head.includes('elsewhere'))
})

test('the request log has the requested path without host, query and fragment', async t => {
  const { server, logs } = await startTestServer(t)
  for (const target of ['http://user:pass@host/one?code=1', '/two?code=2', '/three#code', '//four/five?code=3', '*']) {
    await sendRaw(server.port, request(target))
  }
  const paths = logs.all('request').map(({ path }) => path)
  t.deepEqual(paths, ['/one', '/two', '/three', '/%2Ffour/five', '*'])
})
