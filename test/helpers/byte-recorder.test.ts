import { createServer } from 'node:http'
import test from 'ava'
import { createBrowser } from './browser.js'
import { findSecrets, recordBytes } from './byte-recorder.js'
import { listen } from './ports.js'
import { sendRaw } from './raw.js'

const secret = 'jK8-s_ecret+with/odd characters=42'
const bytes = Buffer.from(secret)

const hidings: readonly (readonly [form: string, text: string])[] = [
  ['sent as it is', `x${secret}y`],
  ['percent-encoded', encodeURIComponent(secret)],
  ['form-encoded', new URLSearchParams({ a: secret }).toString()],
  ['in JSON', JSON.stringify({ a: secret })],
  ['in hex', bytes.toString('hex')],
  ['in upper-case hex', bytes.toString('hex').toUpperCase()],
  ['in base64', bytes.toString('base64')],
  ['in the base64 of a longer text, shifted by one byte', Buffer.from(`x${secret}yz`).toString('base64')],
  ['in the base64url of a longer text, shifted by two bytes', Buffer.from(`xx${secret}y`).toString('base64url')],
  ['cut in two by the border of a chunk', `5\r\n${secret.slice(0, 5)}\r\n1d\r\n${secret.slice(5)}\r\n0\r\n\r\n`]
]

for (const [form, text] of hidings) {
  test(`the search finds a secret that is ${form}`, t => {
    t.is(findSecrets([Buffer.from('nothing here'), Buffer.from(text)], [secret]).length, 1)
  })
}

test('the search finds the last part of a long secret whose beginning is missing', t => {
  const long = Array.from({ length: 40 }, (_, i) => `${i * 7919}`).join('')
  t.is(findSecrets([Buffer.from(`…${long.slice(20)}`)], [long]).length, 1)
})

test('the search finds nothing in bytes that contain no secret', t => {
  t.deepEqual(findSecrets([Buffer.from('jK8-s_ecret without the rest')], [secret]), [])
})

test('the recorder relays requests, raw ones included, and keeps every byte of the responses', async t => {
  const server = createServer((request, response) => response.end(`you asked ${request.url}`))
  const recorder = await recordBytes(t, await listen(t, server))
  t.is((await createBrowser(t, { origin: recorder.url }).get('/page-one')).text(), 'you asked /page-one')
  const raw = await sendRaw(recorder.port, ['GET /page-two HTTP/1.1\r\n', 'Host: a\r\n\r\n'], { answers: 1 })
  t.is(raw.answers[0]?.body.toString(), 'you asked /page-two')
  const broken = await sendRaw(recorder.port, 'BROKEN\r\n\r\n')
  t.is(broken.answers[0]?.statusCode, 400)
  t.true(broken.closedByServer)
  const all = Buffer.concat(recorder.sent()).toString()
  for (const part of ['you asked /page-one', 'you asked /page-two', '400 Bad Request']) t.true(all.includes(part))
  recorder.assertNone(t, ['page-three'], ['a log line'])
  t.is(findSecrets(recorder.sent(), ['/page-two']).length, 1)
})

test('the recorder relays a whole response that ends when the connection closes', async t => {
  const big = 'x'.repeat(3_000_000)
  const server = createServer((_request, response) => response.writeHead(200, { connection: 'close' }).end(big))
  const recorder = await recordBytes(t, await listen(t, server))
  t.is((await createBrowser(t, { origin: recorder.url }).get('/')).body.length, big.length)
  t.true(recorder.byteCount > big.length)
})
