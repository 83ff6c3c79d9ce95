// What the transport does when the provider takes longer than requests come: few calls at once, a short queue, an early no.
import { once } from 'node:events'
import http, { type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { type Endpoint, UpstreamError } from '#src/idp/errors.js'
import { createTransport } from '#src/idp/transport.js'
import { eventually } from '../helpers/eventually.js'

const limits = { atOnce: 2, waiting: 3 }

/** A provider that answers when the test says so, and a transport that knows it. */
async function startSlowProvider(t: ExecutionContext, timeoutMs = 60_000) {
  const held: ServerResponse[] = []
  const server = http.createServer((_request, response) => held.push(response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const transport = createTransport(timeoutMs, undefined, limits)
  t.teardown(() => {
    transport.close()
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    held,
    call: (endpoint: Endpoint = 'token', ms?: number) =>
      transport.call({ endpoint, url, form: { a: 'b' }, ...(ms !== undefined && { timeoutMs: ms }) })
  }
}

test('no more calls than allowed are at the provider at once, and each waiting one follows an answer', async t => {
  const { held, call } = await startSlowProvider(t)
  const calls = Array.from({ length: 5 }, () => call())
  for (let n = 0; n < 5; n++) {
    await eventually(() => held.length === Math.min(5, n + limits.atOnce))
    t.is(held.length, Math.min(5, n + limits.atOnce))
    held[n]?.end('{}')
    await calls[n]
  }
  for (const { status } of await Promise.all(calls)) t.is(status, 200)
})

test('a call that finds the queue full is refused at once and never made', async t => {
  const { held, call } = await startSlowProvider(t)
  const calls = Array.from({ length: 5 }, () => call())
  await eventually(() => held.length === limits.atOnce)
  const error = await t.throwsAsync(call(), { instanceOf: UpstreamError })
  t.like(error, { problem: 'busy', endpoint: 'token', status: undefined })
  for (let n = 0; n < 5; n++) {
    await eventually(() => held.length > n)
    held[n]?.end('{}')
  }
  await Promise.all(calls)
  t.is(held.length, 5)
})

test('the time in the queue counts: a call whose turn does not come in time is never made', async t => {
  const { held, call } = await startSlowProvider(t)
  const calls = [call(), call()]
  await eventually(() => held.length === limits.atOnce)
  const error = await t.throwsAsync(call('token', 50), { instanceOf: UpstreamError })
  t.like(error, { problem: 'timeout', endpoint: 'token' })
  for (const response of held) response.end('{}')
  await Promise.all(calls)
  held.length = 0
  const next = call()
  await eventually(() => held.length === 1)
  held[0]?.end('{}')
  await next
  t.is(held.length, 1)
})

test('a call that waited has only what is left of its time', async t => {
  const { held, call } = await startSlowProvider(t)
  const calls = [call(), call()]
  await eventually(() => held.length === limits.atOnce)
  const started = performance.now()
  const waited = t.throwsAsync(call('token', 2000), { instanceOf: UpstreamError })
  setTimeout(() => held[0]?.end('{}'), 1000)
  t.like(await waited, { problem: 'timeout' })
  t.is(held.length, 3, 'it did have its turn')
  t.true(performance.now() - started < 2900, 'its time did not begin anew')
  held[1]?.end('{}')
  await Promise.all(calls)
})

test('a failed call gives its place to the next one', async t => {
  const { held, call } = await startSlowProvider(t)
  const calls = Array.from({ length: 5 }, () => call().catch((error: unknown) => error))
  for (let n = 0; n < 5; n++) {
    await eventually(() => held.length > n)
    held[n]?.destroy()
    t.like(await calls[n], { problem: 'unreachable' })
  }
})

test('one endpoint being slow does not hold up another', async t => {
  const { held, call } = await startSlowProvider(t)
  const profiles = Array.from({ length: 5 }, () => call('userinfo'))
  await eventually(() => held.length === limits.atOnce)
  const renewal = call('token')
  await eventually(() => held.length === limits.atOnce + 1)
  held[limits.atOnce]?.end('{}')
  t.is((await renewal).status, 200)
  for (let n = 0; n < 6; n++) {
    await eventually(() => held.length > n)
    held[n]?.end('{}')
  }
  await Promise.all(profiles)
})
