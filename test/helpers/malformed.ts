// Unusual and broken requests, generated from a seed: odd methods, paths, headers and framing, and damaged bytes.
import { words } from './words.js'

/** Parts of real requests, which are then damaged. */
export interface Seeds {
  /** Whole Cookie headers of valid sessions. */
  readonly cookies: readonly string[]
  /** Path and query of callbacks of unfinished logins. */
  readonly callbacks: readonly string[]
}

export type Random = () => number

const methods = [...Array<string>(8).fill('GET'), 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE']
const oddMethods = ['CONNECT', 'PRI', 'get', 'M-SEARCH', 'G\0T', '', 'GET GET']
// The routes that use a session are listed three times, so that they are chosen more often.
const paths = words`
  / /index.html /healthz /readyz /metrics /api /api/auth /api/auth/login /api/auth/callback /api/auth/logout
  /api/auth/profile /api/auth/profile /api/auth/profile /api/auth/token /api/auth/token /api/auth/token
  /api/auth/token/ /API/AUTH/TOKEN //api/auth/token /api//auth/token /api/auth/../auth/token /api%2fauth%2ftoken
  /..%2f..%2fetc/passwd /% /%00 /\ * http://[ http://%@host/ https://elsewhere.example/api/auth/token //%@host/#`
const parameters = [...words`code state error error_description iss return_to scope __proto__ code[]`, '']
const oddVersions = ['HTTP/1.0', 'HTTP/2.0', 'HTTP/1.2', 'http/1.1', 'HTTP/', '']
const headers: Readonly<Record<string, readonly string[]>> = {
  Accept: [
    'text/html',
    'application/json',
    '*/*',
    'text/html;q=x',
    ',,,',
    'a'.repeat(5000),
    `"${'""'.repeat(7000)}${','.repeat(14_000)}`,
    '\x80'
  ],
  'Accept-Encoding': ['br', 'gzip;q=0', '*;q=0', 'identity;q=0, *;q=0', ';'],
  'If-None-Match': ['*', 'W/"', '"', 'W/""""'],
  'If-Modified-Since': ['now', 'Thu, 01 Jan 1970 00:00:00 GMT', '-1'],
  'X-Moz': ['prefetch', 'x'],
  Range: ['bytes=0-', 'bytes=9-0', 'bytes='],
  'Sec-Fetch-Site': ['cross-site', 'same-origin', 'none', 'x'],
  'Sec-Fetch-Mode': ['navigate', 'cors', 'x'],
  'Sec-Fetch-Dest': ['document', 'image', 'x'],
  Origin: ['null', 'https://elsewhere.example', 'x'],
  'X-Forwarded-For': ['1.2.3.4', ',', '\x1b[31m', 'x'.repeat(2000)],
  'X-Forwarded-Proto': ['https', 'javascript'],
  'X-Forwarded-Host': ['elsewhere.example', '['],
  'X-Request-Id': ['abc', 'a b', '\x1b', 'x'.repeat(500)],
  traceparent: ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', '00-', '\xff'],
  Authorization: ['Bearer x', 'Basic =', ''],
  Cookie: [
    '',
    ';',
    '=',
    ';;;=;',
    'platform_session',
    'platform_session=',
    'platform_session=1',
    'platform_session=9AAAA',
    'platform_session=4A; platform_session.1=B',
    'platform_session_login=.',
    '__proto__=1'
  ]
}
const framing: typeof headers = {
  Host: ['', 'localhost:8080', 'elsewhere.example', '[', 'a b', '%'],
  'Content-Length': ['0', '5', '-1', '5, 5', '99999999999', 'x'],
  'Transfer-Encoding': ['chunked', 'identity', 'gzip, chunked', 'x'],
  Expect: ['100-continue', 'x'],
  Connection: ['close', 'keep-alive', 'Upgrade', 'x, y, z'],
  Upgrade: ['websocket', 'h2c']
}

/**
 * Returns one request, the last one on its connection. Three of four are valid HTTP with unusual contents. The others
 * may also break the rules of HTTP or contain damaged bytes.
 */
export function malformedRequest(random: Random, seeds: Seeds): Buffer {
  const isHttp = random() < 0.75
  const oddly = <T>(odd: () => T, proper: () => T) => (!isHttp && random() < 0.3 ? odd() : proper())
  const target = targetFrom(random, seeds)
  const lines = Array.from({ length: Math.floor(random() * 5) }, () =>
    oddly(
      () => `${text(random, 12)}: ${text(random, 40)}`,
      () => headerFrom(random)
    )
  )
  // A logout with a valid cookie would end the session, and later requests with the cookie would all be refused at the
  // same check.
  if (random() < 0.7) lines.push(`Cookie: ${cookieFrom(random, seeds, target.includes('logout'))}`)
  lines.push('Connection: close')
  if (isHttp || random() < 0.5) lines.unshift('Host: localhost:8080')
  const method = oddly(
    () => pick(random, oddMethods),
    () => pick(random, methods)
  )
  const version = oddly(
    () => pick(random, oddVersions),
    () => 'HTTP/1.1'
  )
  const line = `${method} ${isHttp ? target.replaceAll(/[^!-~]/g, encodeURIComponent) : target} ${version}`
  const fields = lines.map(line => `${isHttp ? line.replaceAll(/[^ -~\x80-\xff]/g, '') : line}\r\n`)
  const whole = `${line}\r\n${fields.join('')}\r\n`
  return Buffer.from(
    oddly(
      () => spoilt(random, whole),
      () => whole
    ),
    'latin1'
  )
}

function targetFrom(random: Random, { callbacks }: Seeds): string {
  const kind = random()
  if (kind < 0.25) return spoilt(random, pick(random, callbacks))
  const query = Array.from(
    { length: Math.floor(random() * 4) },
    () => `${pick(random, parameters)}=${encodeURIComponent(text(random, 20))}`
  )
  const path = kind < 0.85 ? pick(random, paths) : `/${encodeURI(text(random, 40))}`
  return query.length > 0 ? `${path}?${query.join('&')}` : path
}

function headerFrom(random: Random): string {
  const table = random() < 0.1 ? framing : headers
  const name = pick(random, Object.keys(table))
  return `${name}: ${random() < 0.2 ? text(random, 60) : pick(random, table[name] ?? [''])}`
}

function cookieFrom(random: Random, { cookies }: Seeds, mustBeSpoilt: boolean): string {
  const cookie = pick(random, cookies)
  return mustBeSpoilt || random() < 0.6 ? spoilt(random, cookie) : cookie
}

/**
 * Returns the text with one to three changes: a character replaced, or a piece removed, repeated or moved. The result
 * always differs from the original.
 */
function spoilt(random: Random, original: string): string {
  let result = original
  for (let count = 1 + Math.floor(random() * 3); count > 0 || result === original; count -= 1) {
    const [from, to] = [Math.floor(random() * result.length), Math.floor(random() * result.length)].sort(
      (a, b) => a - b
    )
    const piece = result.slice(from, to)
    const kind = random()
    if (kind < 0.5)
      result = `${result.slice(0, from)}${pick(random, [...'AZaz09-_.;=%& \x80', '\r', '\n', '\0', text(random, 8)])}${result.slice((from ?? 0) + 1)}`
    else if (kind < 0.7) result = result.slice(0, from) + result.slice(to)
    else if (kind < 0.85) result = result.slice(0, to) + piece.slice(0, 500) + result.slice(to)
    else result = piece + result.slice(0, from) + result.slice(to)
  }
  return result.slice(0, 20_000)
}

/** Characters from U+0000 to U+00FF, most of them printable. */
function text(random: Random, most: number): string {
  const character = () => String.fromCharCode(random() < 0.7 ? 32 + random() * 95 : random() * 256)
  return Array.from({ length: Math.floor(random() * most) }, character).join('')
}

function pick<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T
}
