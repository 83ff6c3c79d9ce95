// The module for pages, without a browser. test/browser/client.test.ts uses it in a real one.
import test from 'ava'
import { apiFetch } from '../../src/pages/client/client.js'

test('a call that is aborted while the body of a 503 arrives rejects, and does not return the 503', async t => {
  const stop = new AbortController()
  const body = new ReadableStream({
    pull(controller) {
      stop.abort(new Error('the page stopped the call'))
      controller.error(stop.signal.reason)
    }
  })
  globalThis.fetch = async () => new Response(body, { status: 503 })
  await t.throwsAsync(apiFetch('https://app.example/api/hubs', { signal: stop.signal }), {
    message: 'the page stopped the call'
  })
})
