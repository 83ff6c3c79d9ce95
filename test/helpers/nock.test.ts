import https from 'node:https'
import test from 'ava'
import { mockHost } from './nock.js'

function statusOf(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    https
      .get(url, response => {
        response.resume()
        resolve(response.statusCode)
      })
      .on('error', reject)
  })
}

test('the test fails if an expected request was not sent', async t => {
  const { origin, scope, assertAllCame } = mockHost({ teardown: () => {} })
  scope.get('/came').reply(204).get('/never').reply(204)
  t.is(await statusOf(`${origin}/came`), 204)
  const error = t.throws(assertAllCame)
  t.regex(error.message, /GET https:\/\/idp-\d+\.example:443\/never/)
  t.notRegex(error.message, /\/came/)
})

test('a request to any other host is refused', async t => {
  await t.throwsAsync(statusOf('https://unexpected.example/'), { any: true, code: 'ENETUNREACH' })
})
