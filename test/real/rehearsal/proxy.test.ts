import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import { selfSignedCertificate } from '../../helpers/certificate.js'
import { faults } from '../../helpers/hostile-idp/index.js'
import { freePort } from '../../helpers/ports.js'
import { hasRedis } from '../../helpers/redis-server.js'
import { testWhere } from '../../helpers/requirement.js'
import { signIn, startTestServer } from '../../helpers/server.js'
import { sessionCookies } from '../../web/support.js'
import { hasNginx } from '../gateways/gateways.js'
import { letIn } from './crowd.js'
import { deploy, startNginxFor } from './deployment.js'

const test = testWhere(hasNginx && hasRedis, 'nginx or redis-server is not installed')
const testWithNginx = testWhere(hasNginx, 'nginx is not installed')

/** In dual mode two tokens of this length make a session of four cookies. */
const longToken = 6000

test('the shipped nginx configuration passes a session of four cookies in requests and responses', async t => {
  const { idp, newBrowser } = await deploy(t, { accessTokenLength: longToken })
  const browser = newBrowser()
  await signIn(browser)
  t.is(sessionCookies(browser).length, 4)
  for (let request = 0; request < 4; request += 1) {
    t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  }
  t.is((await browser.navigate('/api/auth/logout')).statusCode, 302)
  t.is(sessionCookies(browser).length, 0)
  t.deepEqual(idp.reuses, [])
})

test('nginx keeps using both replicas while the identity provider fails', async t => {
  const { idp, newBrowser } = await deploy(t)
  const browser = newBrowser()
  await signIn(browser)
  idp.failWhen('userinfo', () => faults.empty(401))
  for (let request = 0; request < 6; request += 1) t.is((await browser.fetch('/api/auth/profile')).statusCode, 502)
  t.is(idp.requestsTo('userinfo').length, 6, 'each request was sent to one replica only')
  t.is((await browser.navigate('/')).statusCode, 200)
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
})

test('during a rolling restart under load no request fails and no user is logged out', async t => {
  const { idp, replicas, newBrowser, startAgain } = await deploy(t)
  const crowd = await letIn(Array.from({ length: 15 }, newBrowser), newBrowser())
  await crowd.everyoneRefreshed()
  for (const index of [0, 1]) {
    const replica = replicas[index]
    replica?.signal('SIGTERM')
    t.deepEqual(await replica?.ended, { code: 0, signal: null })
    t.is(replica?.stderr(), '')
    await startAgain(index)
    // The wait between two restarts that the shipped configuration recommends.
    await pause(2000)
  }
  await crowd.everyoneRefreshed()
  await crowd.leaveUnnoticed(t)
  t.deepEqual(idp.reuses, [])
})

testWithNginx('the logs of the shipped nginx configuration contain no code and no state', async t => {
  const { server } = await startTestServer(t)
  const query = 'code=code-of-a-user&state=state-of-a-user'
  const ask = (url: string, path: string) =>
    fetch(`${url}${path}?${query}`, { redirect: 'manual', headers: { referer: `https://idp.example/?${query}` } })

  const up = await startNginxFor(t, [server.port, server.port])
  const down = await startNginxFor(t, [await freePort(), await freePort()])
  t.is((await ask(up.url, '/api/auth/callback')).status, 400)
  t.is((await ask(down.url, '/api/auth/callback')).status, 502)
  // A request to another path shows that errors are logged.
  t.is((await ask(down.url, '/api/auth/login')).status, 502)
  for (const { accessLog } of [up, down]) {
    const lines = await accessLog()
    t.regex(lines, /"GET \/api\/auth\/callback HTTP\/1\.1" (400|502) /)
    t.notRegex(lines, /of-a-user/)
  }
  const errors = down.errorLog().split('\n')
  t.true(errors.some(line => line.includes('GET /api/auth/login')))
  const ofCallback = errors.filter(line => line.includes('/api/auth/callback'))
  t.deepEqual(ofCallback, [])
})

testWithNginx('the shipped nginx configuration sends HSTS and hides its version', async t => {
  const { server } = await startTestServer(t)
  const up = await startNginxFor(t, [server.port, server.port])
  const down = await startNginxFor(t, [await freePort(), await freePort()])
  for (const { url } of [up, down]) {
    for (const path of ['/', '/api/auth/callback', '/api/auth/profile', '/nothing-there']) {
      const { headers } = await fetch(url + path, { redirect: 'manual' })
      t.is(headers.get('strict-transport-security'), 'max-age=31536000', path)
      t.is(headers.get('server'), 'nginx')
    }
  }
})

testWithNginx(
  'with nginx-tls.conf and a certificate, nginx serves https, and http leads there, except for health checks',
  async t => {
    const { server } = await startTestServer(t)
    const certificate = selfSignedCertificate({ host: 'app.example.com' })
    const { url, tlsPort } = await startNginxFor(t, [server.port, server.port], certificate)
    const headers = { host: 'app.example.com' }
    const statusOf = async (scheme: typeof http | typeof https, port: number, path: string) => {
      const options = { port, path, headers, host: '127.0.0.1', servername: 'app.example.com', ca: certificate.cert }
      const [response] = (await once(scheme.get(options), 'response')) as [http.IncomingMessage]
      response.resume()
      return [response.statusCode, response.headers.location]
    }
    const port = Number(new URL(url).port)
    for (const path of ['/healthz', '/readyz']) t.deepEqual(await statusOf(http, port, path), [200, undefined], path)
    const page = '/models?id=7&name=a%2Fb'
    t.deepEqual(await statusOf(http, port, page), [308, `https://app.example.com${page}`])
    t.deepEqual(await statusOf(http, port, '/healthz/x'), [308, 'https://app.example.com/healthz/x'])
    t.deepEqual(await statusOf(https, tlsPort, '/readyz'), [200, undefined])
    t.deepEqual(await statusOf(https, tlsPort, '/api/auth/profile'), [401, undefined])
  }
)
