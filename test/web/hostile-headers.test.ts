// Headers, paths and queries with patterns for which a parser may need quadratic time.
import test from 'ava'
import { publicOrigin, testConfig } from '../helpers/config.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { sendRaw } from '../helpers/raw.js'
import { startServerProcess } from '../helpers/server-process/index.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { words } from '../helpers/words.js'

/** The maximum time in milliseconds by which one request may delay other clients. */
const MAX_MS = 250
// The server accepts 32 KiB of headers, so this length leaves space for the rest of the request.
const LENGTH = 31_000

const fill = (piece: string) => piece.repeat(Math.floor(LENGTH / piece.length))
const halves = (first: string, second: string) =>
  first.repeat(LENGTH / 2 / first.length) + second.repeat(LENGTH / 2 / second.length)

const repeated = words`
  ", "; " , ; a, */*, a;q=1, = \ \" % %25 %e2%82 ( [ 9 ../ ./ / @ : & a& state=a& return_to=/a& # ?
  platform_session platform_session.1=A;`

const patterns: Readonly<Record<string, string>> = {
  ...Object.fromEntries([...repeated, ', ', '; ', '\xe9', '\xa0'].map(piece => [`${piece} repeated`, fill(piece)])),
  'an odd number of quotation marks, then commas': `"${halves('""', ',')}`,
  'an odd number of quotation marks, then semicolons': `a/b;"${halves('""', ';')}`,
  'quotation marks and semicolons in parameters': `a/b;${fill('";')}`,
  'an open quotation, and escaped quotation marks': `"${fill('\\"')}`,
  'commas, then spaces': halves(',', ' '),
  'a name and many parameters': `a/b${fill(';a=b')}`,
  'spaces in the middle': `a${' '.repeat(LENGTH)}b`,
  'tabs in the middle': `a${'\t'.repeat(LENGTH)}b`,
  'spaces before a name that the server knows': `a${' '.repeat(LENGTH)}no-cache x`,
  'nested parentheses': halves('(', ')'),
  'nested brackets': halves('[', ']'),
  'nested braces': halves('{', '}'),
  ranges: `bytes=${fill('0-,')}`,
  'a long name, then parent folders': `${'a'.repeat(LENGTH / 2)}/${'b/../'.repeat(LENGTH / 10)}`,
  'an at sign and a long host': `a@${fill('b')}`,
  'an at sign and many labels': `a@${fill('b.')}`,
  'an at sign and letters beyond ASCII': `a@${fill('\xe9\xfc')}`,
  'an at sign and an encoded label': `a@xn--${fill('9a')}`,
  'a number sign at the end': `${fill('a')}#`,
  'session cookies': fill('platform_session=4A; '),
  'names of session cookies far apart': fill('platform_session   ')
}

const headers = words`
  Accept Accept-Encoding Accept-Language Accept-Charset If-None-Match If-Modified-Since Cache-Control Range Cookie Host
  Forwarded X-Forwarded-For X-Forwarded-Host Content-Type Expect Connection X-Request-Id traceparent Sec-Fetch-Site
  Sec-Purpose`
// The callback fails, so it also gets an error page.
const targets = ['/', '/api/auth/login', '/api/auth/callback?code=a&state=b', '/api/auth/profile']

// The server parses the host of a request only if its login cookie is from the last minute.
const loginCookie = `platform_session_login=${'a'.repeat(43)}.${Date.now()}`

function withHeader(name: string, value: string): string[] {
  const headers: Readonly<Record<string, string>> = {
    Host: 'localhost',
    Cookie: loginCookie,
    // The server reads Cache-Control only in conditional requests.
    'If-None-Match': '"a"',
    [name]: value
  }
  const lines = Object.entries(headers).map(header => `${header.join(': ')}\r\n`)
  return targets.map(target => `GET ${target} HTTP/1.1\r\n${lines.join('')}\r\n`)
}

function withTarget(value: string): string[] {
  const text = value.replaceAll(/[ \t]/g, '')
  const targets = [`/${text}`, `/\xa0${text}`, `/a#${text}`, `http://${text}`, `http://localhost/${text}`, text]
  const ofRoutes = ['login?return_to=/', 'callback?', 'callback?code=a&state='].map(path => `/api/auth/${path}${text}`)
  return [...targets, ...ofRoutes].map(
    target => `GET ${target} HTTP/1.1\r\nHost: localhost\r\nCookie: ${loginCookie}\r\n\r\n`
  )
}

/**
 * While the server uses CPU time for one request, it serves no other client. Other clients therefore wait for this CPU time. The
 * test measures the CPU time instead of the wait, because it does not depend on the load of the machine.
 */
test('no header, path or query of 31 kB delays other clients by more than 250 ms of CPU time', async t => {
  const idp = await createHostileIdp(t, { callbackUrl: `${publicOrigin}/api/auth/callback` })
  const wwwroot = await tempFolder(t, { 'index.html': '<!doctype html>', 'index.html.gz': 'gz' })
  const server = await startServerProcess(t, testConfig(idp, { wwwroot, log: { level: 'info', trustForwardedFor: 1 } }))
  let slowest = { ms: 0, what: '' }

  async function cpuTimeOf(requests: readonly string[]): Promise<number> {
    const before = await server.cpuMs()
    const { answers } = await sendRaw(server.port, requests.join(''), { answers: requests.length })
    // After a request that Node's parser refuses, the server closes the connection.
    for (const request of requests.slice(answers.length)) await sendRaw(server.port, request, { answers: 1 })
    return (await server.cpuMs()) - before
  }
  async function measure(what: string, requests: readonly string[]) {
    const together = await cpuTimeOf(requests)
    if (together > slowest.ms) slowest = { ms: together, what }
    if (together < MAX_MS) return
    for (const request of requests) {
      const ms = await cpuTimeOf([request])
      t.true(ms < MAX_MS, `${what}: ${ms} ms for ${request.slice(0, 60)}`)
    }
  }

  for (const [pattern, value] of Object.entries(patterns)) {
    for (const header of headers) await measure(`${header}: ${pattern}`, withHeader(header, value))
    await measure(`path and query: ${pattern}`, withTarget(value))
  }
  t.log(`slowest pattern: ${slowest.what}, which took ${Math.round(slowest.ms)} ms of CPU time for all targets`)
  t.is(server.exit(), undefined)
  t.is(server.errorOutput(), '')
})
