import http from 'node:http'
import test from 'ava'
import { createBrowser } from '../../helpers/browser.js'
import { listen } from '../../helpers/ports.js'
import { poll } from './poller.js'
import { startProxy } from './proxy.js'

test('a page keeps polling after a connection ended without a response, and records status 0', async t => {
  let asked = 0
  const server = http.createServer((_request, response) => {
    asked++
    if (asked === 1) response.socket?.destroy()
    else response.writeHead(asked === 2 ? 503 : 200, asked === 2 ? { 'retry-after': '0' } : {}).end()
  })
  const browser = createBrowser(t, { origin: `http://127.0.0.1:${await listen(t, server)}` })
  const answers = await poll(browser, { path: '/', everyMs: 1, hasEnded: () => asked === 3 })
  const results = answers.map(({ status, retryAfter }) => [status, retryAfter])
  t.deepEqual(results, [
    [0, undefined],
    [503, '0'],
    [200, undefined]
  ])
})

test('the load balancer keeps idle connections open for 75 seconds, longer than any pause in a scenario', async t => {
  const proxy = await startProxy(t, { targets: () => [], random: () => 1 })
  const { headers } = await createBrowser(t, { origin: proxy.url }).get('/')
  t.is(headers['keep-alive'], 'timeout=75')
})
