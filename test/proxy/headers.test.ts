// The lists of headers that the proxy forwards in requests and in responses. These tests need no server.
import test from 'ava'
import fc from 'fast-check'
import { createRequestHeaders, namesNotSelected } from '#src/web/proxy/request.js'
import { createResponseHeaders } from '#src/web/proxy/response-headers.js'
import { words } from '../helpers/words.js'

const select = createRequestHeaders(['Region'])

const passed = words`
  Accept Accept-Encoding Accept-Language Content-Type Content-Encoding Content-Disposition Content-MD5 Range
  If-Match If-None-Match If-Modified-Since If-Unmodified-Since If-Range Prefer Cache-Control User-Agent
  traceparent tracestate X-Ads-Region region Content-Range x-ads-force x-ads-derivative-format X-Ads-Meta-Name`
const kept = words`
  Cookie Origin Referer Forwarded X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Real-IP x-user-id
  Expect X-Request-Id Connection Keep-Alive TE Trailer Transfer-Encoding Upgrade Proxy-Authorization Proxy-Connection
  Authorization Author.ization _Authorization Host Content-Length Via Sec-Fetch-Site X-CSRF HTTP2-Settings
  X-Anything X-Ads XX-Ads-Force X-Original-URL X-Rewrite-URL X-HTTP-Method-Override Max-Forwards DNT Priority`

test('request headers on the list are forwarded with lower-case names and unchanged bytes, and repeated headers as such', t => {
  for (const name of passed) t.deepEqual(select([name, 'v\xfc']), [name.toLowerCase(), 'v\xfc'], name)
  t.deepEqual(select(['Accept', 'a', 'accept', 'b']), ['accept', 'a', 'accept', 'b'])
})

test('request headers that are not on the list, or that the Connection header lists, are not forwarded', t => {
  for (const name of kept) {
    t.deepEqual(select([name, 'v']), [], name)
    t.deepEqual(select([name.toUpperCase(), 'v']), [], name)
  }
  t.deepEqual(select(['Connection', 'close, Range , ACCEPT', 'Range', 'bytes=0-1', 'Accept', '*/*', 'Prefer', 'x']), [
    'prefer',
    'x'
  ])
  t.deepEqual(select(['Range', 'bytes=0-1', 'Connection', 'accept', 'connection', 'range']), [])
  t.deepEqual(select(['Connection', 'keep-alive', 'Accept', '*/*']), ['accept', '*/*'])
})

test('the names of the headers that are not forwarded are known, except those that the proxy sets itself', t => {
  const raw = words`Host h Cookie a X-Ads-Force true DNT 1 dnt 1 Connection x-b X-B 1`
  t.deepEqual(namesNotSelected(raw, select(raw)), ['cookie', 'dnt', 'x-b'])
})

const selectResponse = createResponseHeaders(['X-Total-Count'])
const bytes = (headers: readonly string[]) => headers.map(text => Buffer.from(text, 'latin1'))
function selected(headers: readonly string[], { statusCode = 200, setsCookie = false } = {}) {
  const mapLocation = (location: string) => `mapped:${location}`
  return selectResponse({ statusCode, rawHeaders: bytes(headers) }, { mapLocation, setsCookie })
}

const responsePassed = words`
  Content-Type Content-Length Content-Encoding Content-Language Content-Range Content-Disposition Content-MD5
  Digest Accept-Ranges Range ETag Last-Modified Date Age Expires Retry-After Allow x-ads-region
  x-ads-duration RateLimit RateLimit-Policy RateLimit-Remaining X-RateLimit-Limit X-Total-Count`
const responseKept = words`
  Set-Cookie Set-Cookie2 Connection Keep-Alive Transfer-Encoding Trailer Upgrade Proxy-Authenticate WWW-Authenticate
  Access-Control-Allow-Origin Access-Control-Allow-Credentials Content-Security-Policy-Report-Only X-Accel-Redirect
  X-Sendfile Speculation-Rules Service-Worker-Allowed Clear-Site-Data Refresh Link Server X-Powered-By
  Strict-Transport-Security Alt-Svc NEL Report-To SourceMap Via P3P Cross-Origin-Opener-Policy X-Frame-Options
  Permissions-Policy Ratelimited X-Anything Session-Status Session-User X-Request-Id`

test('response headers on the list are passed on, also repeated ones, and the Location header is mapped', t => {
  for (const name of responsePassed) t.deepEqual(selected([name, 'v\xfc']).get(name.toLowerCase()), ['v\xfc'], name)
  t.deepEqual(selected(['X-Ads-A', '1', 'x-ads-a', '2']).get('x-ads-a'), ['1', '2'])
  t.deepEqual(selected(['Location', '/x']).get('location'), ['mapped:/x'])
})

test('response headers that are not on the list, or that the Connection header lists, are dropped', t => {
  const own = [...selected([]).keys()]
  for (const name of responseKept) t.deepEqual([...selected([name, 'v']).keys()], own, name)
  t.false(selected(['Connection', 'close, ETag', 'ETag', '"x"']).has('etag'))
})

test('every response gets headers that prevent it from running scripts in this origin and from being loaded by other sites', t => {
  const given = 'Content-Security-Policy: x, X-Content-Type-Options: x, Cross-Origin-Resource-Policy: cross-origin'
  const headers = selected(given.split(/, |: /))
  t.deepEqual(headers.get('content-security-policy'), ["sandbox; default-src 'none'"])
  t.deepEqual(headers.get('x-content-type-options'), ['nosniff'])
  t.deepEqual(headers.get('cross-origin-resource-policy'), ['same-origin'])
})

test('Content-Length is passed on unless the response is chunked or has the status 204', t => {
  t.deepEqual(selected(['Content-Length', '5']).get('content-length'), ['5'])
  t.false(selected(['Content-Length', '5', 'Transfer-Encoding', 'chunked']).has('content-length'))
  t.false(selected(['Content-Length', '0'], { statusCode: 204 }).has('content-length'))
  t.deepEqual(selected(['Content-Length', '5'], { statusCode: 304 }).get('content-length'), ['5'])
})

const caching: readonly (readonly [given: readonly string[], expected: string])[] = [
  [[], 'private, no-store'],
  [[''], 'private, no-store'],
  [['public, max-age=60'], 'private, max-age=60'],
  [['PUBLIC,Max-Age=60,s-maxage=5, proxy-revalidate'], 'private, Max-Age=60'],
  [['private'], 'private'],
  [['no-store'], 'private, no-store'],
  [['no-cache, must-revalidate'], 'private, no-cache, must-revalidate'],
  [['public'], 'private'],
  [['max-age=1', 'immutable'], 'private, max-age=1, immutable'],
  [['no-cache="set-cookie, public", max-age=1'], 'private, no-cache="set-cookie, public", max-age=1'],
  [['private="x, y", max-age=1'], 'private, max-age=1'],
  [['s-maxage = 5, max-age=1'], 'private, max-age=1'],
  [['publicity=1'], 'private, publicity=1']
]
for (const [given, expected] of caching) {
  test(`the Cache-Control ${JSON.stringify(given)} of an upstream becomes ${expected}`, t => {
    const headers = given.flatMap(value => ['Cache-Control', value])
    t.deepEqual(selected(headers).get('cache-control'), [expected])
    t.deepEqual(selected(headers, { setsCookie: true }).get('cache-control'), ['private, no-store'])
  })
}

test('for any Cache-Control of the upstream, a shared cache is not allowed to store the response', t => {
  const names = words`public s-maxage=1 max-age=1 private private="a" PUBLIC proxy-revalidate " = , x="`
  const directive = fc.constantFrom(...names, ' ')
  fc.assert(
    fc.property(fc.array(directive, { maxLength: 6 }), directives => {
      const [value = ''] = selected(['Cache-Control', directives.join(',')]).get('cache-control') ?? []
      return (
        value.startsWith('private') &&
        !/(^|,)\s*(public|s-maxage|proxy-revalidate)\b/i.test(value.replace(/"[^"]*"/g, ''))
      )
    }),
    { numRuns: 5000 }
  )
  t.pass()
})

test('the Vary header of every response contains Cookie or *', t => {
  t.deepEqual(selected([]).get('vary'), ['Cookie'])
  t.deepEqual(selected(['Vary', 'Accept', 'Vary', 'Origin']).get('vary'), ['Accept, Origin, Cookie'])
  t.deepEqual(selected(['Vary', 'accept, COOKIE']).get('vary'), ['accept, COOKIE'])
  t.deepEqual(selected(['Vary', '*']).get('vary'), ['*'])
})
