/** Measures resident memory while the proxy forwards large bodies, and while a client reads slowly. */

import { randomBytes } from 'node:crypto'
import http from 'node:http'
import { SERVER_CORE, startProcess } from './processes.js'
import { PROXIED_PATH, SERVER } from './scenarios.js'
import { createSession } from './sessions.js'

const MEBIBYTE = 2 ** 20
const BYTES = 2 ** 30
const SLOW_SECONDS = 5
const LOOK_MS = 50

/** @param {import('./lineup.js').Around} around */
export async function measureStreams({ providerUrl, wwwroot }) {
  const secret = randomBytes(32).toString('base64url')
  const session = createSession(2000)
  const process = startProcess('serve.js', SERVER_CORE, [SERVER])
  try {
    const port = await process.ask('start', { secret, providerUrl, wwwroot, session })
    const cookie = await process.ask('cookie', session)
    const send = options =>
      request({ port, host: '127.0.0.1', headers: { cookie, 'sec-fetch-site': 'same-origin' }, ...options })
    const rows = []
    for (const [name, work] of [
      ['1 GiB down', () => download(send)],
      ['1 GiB up', () => upload(send, cookie)],
      [`a client that reads nothing for ${SLOW_SECONDS} s`, () => readNothing(send)]
    ]) {
      rows.push({ name, ...(await watched(process, work)) })
    }
    return rows
  } finally {
    await process.stop()
  }
}

/** Runs `work` and measures the memory of the server during this time. */
async function watched(process, work) {
  const resident = async () => (await process.ask('usage')).residentBytes / MEBIBYTE
  const before = await resident()
  const cpuBefore = (await process.ask('usage')).cpuMicros
  let most = before
  const looking = setInterval(async () => {
    most = Math.max(most, await resident())
  }, LOOK_MS)
  const started = performance.now()
  await work()
  clearInterval(looking)
  const cpuSeconds = ((await process.ask('usage')).cpuMicros - cpuBefore) / 1e6
  return { before, most, seconds: (performance.now() - started) / 1000, cpuSeconds }
}

function request({ begin, ...options }) {
  return new Promise((resolve, reject) => {
    const sent = http.request({ agent: false, ...options }, resolve).once('error', reject)
    if (begin) begin(sent)
    else sent.end()
  })
}

async function download(send) {
  const response = await send({ path: `${PROXIED_PATH}/bytes-${BYTES}` })
  let received = 0
  for await (const chunk of response) received += chunk.length
  if (received !== BYTES) throw new Error(`streams: The client received ${received} bytes instead of ${BYTES}.`)
}

async function upload(send, cookie) {
  const chunk = Buffer.alloc(65_536)
  const response = await send({
    path: `${PROXIED_PATH}/count`,
    method: 'POST',
    headers: { cookie, 'sec-fetch-site': 'same-origin', 'content-length': BYTES },
    begin(sent) {
      let left = BYTES
      const more = () => {
        while (left > 0) {
          left -= chunk.length
          if (!sent.write(chunk)) return void sent.once('drain', more)
        }
        sent.end()
      }
      more()
    }
  })
  const [counted] = await response.toArray()
  if (Number(counted) !== BYTES) throw new Error(`streams: The API received ${counted} bytes instead of ${BYTES}.`)
}

async function readNothing(send) {
  const response = await send({ path: `${PROXIED_PATH}/bytes-${BYTES}` })
  response.pause()
  await new Promise(resolve => setTimeout(resolve, SLOW_SECONDS * 1000))
  response.destroy()
}
