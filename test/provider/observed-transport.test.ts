import test from 'ava'
import { ProviderError } from '#src/provider/errors.js'
import { observed } from '#src/provider/observed-transport.js'
import type { Transport, TransportResponse } from '#src/provider/transport.js'

const enterQueue = async () => () => {}
const request = { endpoint: 'token', url: 'https://idp.example/token' } as const

async function outcomeOf(call: Transport['call']): Promise<readonly unknown[]> {
  const counted: unknown[][] = []
  const transport = observed({ call, enterQueue, close() {} }, { providerCalled: (...call) => counted.push(call) })
  await transport.call(request).catch(() => {})
  return counted.map(([endpoint, outcome, seconds]) => [endpoint, outcome, typeof seconds])
}

for (const problem of ['timeout', 'unreachable', 'busy', 'unusable'] as const) {
  test(`a call that fails with the problem "${problem}" is counted with this outcome`, async t => {
    const failing = () => Promise.reject(new ProviderError('token', problem, 'a test'))
    t.deepEqual(await outcomeOf(failing), [['token', problem, 'number']])
  })
}

test('a response is counted with its status, and an unexpected exception as an error', async t => {
  const answering = async () => ({ status: 429 }) as TransportResponse
  t.deepEqual(await outcomeOf(answering), [['token', '429', 'number']])
  t.deepEqual(await outcomeOf(() => Promise.reject(new TypeError('odd'))), [['token', 'error', 'number']])
})

test('a token request that finds its queue full is counted as busy, and a place in the queue is not counted', async t => {
  const counted: unknown[][] = []
  const metrics = { providerCalled: (...call: unknown[]) => void counted.push(call) }
  const call = async () => ({ status: 200 }) as TransportResponse
  const free = observed({ call, enterQueue, close() {} }, metrics)
  const leave = await free.enterQueue('refresh', 'token')
  leave()
  t.deepEqual(counted, [])
  const busy = new ProviderError('token', 'busy', 'a test')
  const full = observed({ call, enterQueue: () => Promise.reject(busy), close() {} }, metrics)
  t.is(await t.throwsAsync(full.enterQueue('refresh', 'token')), busy)
  t.deepEqual(
    counted.map(([endpoint, outcome]) => [endpoint, outcome]),
    [['token', 'busy']]
  )
})
