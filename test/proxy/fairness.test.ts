// One user must not be able to block an upstream for other users, and a page may send many requests in parallel.

import type { ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import test from 'ava'
import { defaultCallbackUrl, discovered } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { startProxy, startUpstream } from '../helpers/upstream.js'
import { ask, newSession, open, statusOf } from './clients.js'

test('two sessions with 32 slow uploads each do not delay the request of another user', async t => {
  const upstream = await startUpstream(t, (request, response) => {
    if (request.method === 'GET') response.end('{}')
  })
  const proxied = await startProxy(t, { rules: [`GET,POST /api/x ${upstream.origin}/x`] })
  for (const cookie of [proxied.cookie, await newSession(proxied)]) {
    for (let count = 0; count < 32; count++) {
      open(t, proxied, { cookie, method: 'POST', headers: { 'Content-Length': '100000' } }).write('x')
    }
  }
  await eventually(() => upstream.requests.length === 64)
  const cookie = await newSession(proxied)
  t.is(await statusOf(ask(t, proxied, { cookie })), 200)
})

test('a page that sends 100 parallel requests of one session gets a response to each of them', async t => {
  const held: ServerResponse[] = []
  const upstream = await startUpstream(t, (_request, response) => void held.push(response))
  const proxied = await startProxy(t, { rules: [`GET /api/x ${upstream.origin}/x`] })
  const statuses = Promise.all(Array.from({ length: 100 }, () => statusOf(ask(t, proxied))))
  await eventually(() => held.length === 32)
  await pause(200)
  t.is(held.length, 32)
  for (let answered = 0; answered < 100; answered++) {
    await eventually(() => answered < held.length)
    t.true(held.length <= answered + 32)
    held[answered]?.end('{}')
  }
  t.deepEqual([...new Set(await statuses)], [200])
})

test('one user with many sessions cannot take all slots of an upstream', async t => {
  const held: ServerResponse[] = []
  const upstream = await startUpstream(t, (request, response) => {
    if (request.url === '/held') held.push(response)
    else response.end('{}')
  })
  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
  const settings = { platform: { ...discovered(idp), scopes: ['openid', 'data:read'] } }
  const proxied = await startProxy(t, { rules: [`GET /api/* ${upstream.origin}/*`] }, { idp, settings })
  const signInAs = (sub: string) => {
    idp.settings.profile = { sub, name: sub }
    return newSession(proxied)
  }
  for (let count = 0; count < 3; count++) {
    const cookie = await signInAs('greedy')
    for (let more = 0; more < 32; more++) ask(t, proxied, { cookie, path: '/api/held' })
  }
  await eventually(() => held.length === 48)
  t.is(await statusOf(ask(t, proxied, { cookie: await signInAs('other') })), 200)
  t.is(held.length, 48)
})
