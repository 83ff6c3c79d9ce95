// Requests arrive faster than the provider responds. The transport limits the number of simultaneous calls and the length
// of each queue, and rejects further calls immediately. In dual mode a refresh makes
// two token requests.
import type { ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { createIdentityProvider } from '#src/provider/client.js'
import { type Endpoint, ProviderError } from '#src/provider/provider-error.js'
import { createTransport } from '#src/provider/transport.js'
import { testConfig, unreachableIdp } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { startUpstream } from '../helpers/upstream.js'

const limits = { inProgress: 2, waiting: 3 }

/**
 * Starts a provider that holds back its responses, and a client that calls it. As in the server, each token request first enters a
 * queue.
 */
async function startSlowProvider(t: ExecutionContext) {
  const held: ServerResponse[] = []
  const forms: URLSearchParams[] = []
  const { origin: url, requests } = await startUpstream(t, async (_request, response) => {
    forms.push(new URLSearchParams(String(await requests.at(-1)?.body())))
    held.push(response)
  })
  const transport = createTransport(60_000, { limits })
  t.teardown(() => transport.close())
  const { platform } = testConfig({ ...unreachableIdp, authorizationEndpoint: url, tokenEndpoint: url })
  const idp = createIdentityProvider(platform, transport)
  return {
    held,
    /** The forms of the requests so far, in order. */
    forms,
    exchange: (code: string) =>
      idp.inTokenQueue('code exchange', {}, () => idp.authorizationCodeGrant({ code, codeVerifier: 'v' })),
    refresh: (refreshToken: string, isSecond = false) =>
      idp.inTokenQueue('refresh', { isUrgent: isSecond }, () => idp.refreshTokenGrant({ refreshToken, scope: 's' })),
    call: (endpoint: Endpoint = 'revocation', timeoutMs?: number) =>
      transport.call({ endpoint, url, form: { a: 'b' }, timeoutMs }),
    /** Responds to these requests, as soon as each of them is sent. */
    async respondTo(first: number, end: number, body = '{}') {
      for (let n = first; n < end; n++) {
        await eventually(() => held.length > n)
        held[n]?.end(body)
      }
    }
  }
}

test('the time that a call waits in the queue counts toward its time limit', async t => {
  const { held, call } = await startSlowProvider(t)
  const calls = [call(), call()]
  await eventually(() => held.length === limits.inProgress)
  const waited = t.throwsAsync(call('revocation', 2000), { instanceOf: ProviderError })
  await pause(600)
  held[0]?.end('{}')
  // A response that arrives 100 ms late is still used. If the time limit began after the wait, it would end after this timer, even on a machine that is slow.
  const wholeLimit = pause(2000, { problem: 'the time limit did not include the wait in the queue' })
  t.like(await Promise.race([waited, wholeLimit]), { problem: 'timeout' })
  t.is(held.length, 3, 'the call was sent')
  held[1]?.end('{}')
  await Promise.all(calls)
})

const tokens = JSON.stringify({ access_token: 'an-access-token', expires_in: 3599 })

test('waiting code exchanges do not delay refreshes, and waiting refreshes do not delay code exchanges', async t => {
  const { held, forms, exchange, refresh, respondTo } = await startSlowProvider(t)
  const codes = Array.from({ length: 5 }, (_, n) => exchange(`${n}`))
  await eventually(() => held.length === limits.inProgress)
  const error = await t.throwsAsync(exchange('one too many'), { instanceOf: ProviderError })
  t.like(error, { problem: 'queue_full', endpoint: 'token', status: undefined })
  const refreshes = Array.from({ length: 5 }, (_, n) => refresh(`${n}`))
  await eventually(() => held.length === 2 * limits.inProgress)
  const grants = forms.slice(limits.inProgress).map(form => form.get('grant_type'))
  t.deepEqual(grants, ['refresh_token', 'refresh_token'])
  await respondTo(0, 10, tokens)
  for (const { accessToken } of await Promise.all([...codes, ...refreshes])) t.is(accessToken, 'an-access-token')
})
