// The lists of headers that the proxy forwards in requests and in responses. These tests need no server.
import test from 'ava'
import fc from 'fast-check'
import { createRequestHeaders, namesNotSelected } from '#src/web/proxy/request-headers.js'
import { createResponseHeaders, namesDropped } from '#src/web/proxy/response-headers.js'
import { words } from '../helpers/words.js'

const select = createRequestHeaders(['Region'])

const passed = words`
  Accept Accept-Encoding Accept-Language Content-Type Content-Encoding Content-Disposition Content-MD5 Range
  If-Match If-None-Match If-Modified-Since If-Unmodified-Since If-Range Prefer Cache-Control User-Agent
  traceparent tracestate X-Ads-Region region Content-Range x-ads-force x-ads-derivative-format X-Ads-Meta-Name
  Last-Event-ID Idempotency-Key Tus-Resumable Upload-Offset Upload-Length Upload-Metadata`
const kept = words`
  Cookie Origin Referer Forwarded X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Real-IP x-user-id
  Expect X-Request-Id Connection Keep-Alive TE Trailer Transfer-Encoding Upgrade Proxy-Authorization Proxy-Connection
  Authorization Author.ization _Authorization Host Content-Length Via Sec-Fetch-Site X-CSRF HTTP2-Settings
  X-Anything X-Ads XX-Ads-Force X-Original-URL X-Rewrite-URL X-HTTP-Method-Override X-Requested-With Tus-Extension Max-Forwards DNT Priority`

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

const selectResponse = createResponseHeaders(['X-More'])
const bytes = (headers: readonly string[]) => headers.map(text => Buffer.from(text, 'latin1'))
function selected(headers: readonly string[], { statusCode = 200, setsCookie = false } = {}) {
  const mapLocation = (location: string) => `mapped:${location}`
  return selectResponse({ statusCode, rawHeaders: bytes(headers) }, { mapLocation, setsCookie })
}

const responsePassed = words`
  Content-Type Content-Length Content-Encoding Content-Language Content-Range Content-Disposition Content-MD5
  Digest Accept-Ranges Range ETag Last-Modified Date Age Expires Retry-After Allow x-ads-region
  x-ads-duration RateLimit RateLimit-Policy RateLimit-Remaining X-RateLimit-Limit X-Total-Count X-More
  Upload-Offset Upload-Expires Tus-Resumable Tus-Extension`
const responseKept = words`
  Set-Cookie Set-Cookie2 Connection Keep-Alive Transfer-Encoding Trailer Upgrade Proxy-Authenticate WWW-Authenticate
  Access-Control-Allow-Origin Access-Control-Allow-Credentials Content-Security-Policy-Report-Only X-Accel-Redirect
  X-Sendfile Speculation-Rules Service-Worker-Allowed Clear-Site-Data Refresh Server X-Powered-By
  Strict-Transport-Security Alt-Svc NEL Report-To SourceMap Via P3P Cross-Origin-Opener-Policy X-Frame-Options
  Permissions-Policy Ratelimited X-Anything Session-Status Session-User X-Request-Id`

test('response headers on the list are passed on, also repeated ones, and the Location header is mapped', t => {
  for (const name of responsePassed) t.is(selected([name, 'v\xfc']).get(name.toLowerCase()), 'v\xfc', name)
  t.deepEqual(selected(['X-Ads-A', '1', 'x-ads-a', '2']).get('x-ads-a'), ['1', '2'])
  t.deepEqual(selected(['X-Ads-A', '1', 'x-ads-a', '2', 'x-ads-a', '3']).get('x-ads-a'), ['1', '2', '3'])
  t.is(selected(['Location', '/x']).get('location'), 'mapped:/x')
})

const links: readonly (readonly [given: string, expected: string | undefined])[] = [
  ['<https://a.example/?page=2>; rel="next"', '<https://a.example/?page=2>; rel="next"'],
  [
    '</?p=1,2>; rel=prev; title="a, b", </x.css>; rel=stylesheet, </?p=9>; REL="last"',
    '</?p=1,2>; rel=prev; title="a, b", </?p=9>; REL="last"'
  ],
  ['</x>; rel="next preload"', undefined],
  ['</x>; rel=next; rel=preload', undefined],
  ['</x>; title="; rel=next"; rel=preload', undefined],
  ['</x>; title="abc; rel=next, </y>; rel=preload', undefined],
  ['</x>; rel', undefined],
  ['</x>', undefined],
  ['</a.js>; rel=modulepreload, </b>; rel=self first', '</b>; rel=self'],
  ['<'.repeat(16_000), undefined]
]
test('a Link header keeps only the links to other pages of a list and to the response itself', t => {
  for (const [given, expected] of links) t.is(selected(['Link', given]).get('link'), expected, given)
  const configured = createResponseHeaders(['Link'])(
    { statusCode: 200, rawHeaders: bytes(['Link', '</x>; rel=preload']) },
    { mapLocation: String, setsCookie: false }
  )
  t.false(configured.has('link'))
})

test('response headers that are not on the list, or that the Connection header lists, are dropped', t => {
  const own = [...selected([]).keys()]
  for (const name of responseKept) t.deepEqual([...selected([name, 'v']).keys()], own, name)
  t.false(selected(['Connection', 'close, ETag', 'ETag', '"x"']).has('etag'))
})

const policy = "default-src 'none'; form-action 'none'; base-uri 'none'"
const policies: readonly (readonly [types: readonly string[], expected: string, statusCode?: number])[] = [
  ...[
    'application/pdf',
    'image/png',
    'image/JPEG',
    'image/gif',
    'image/webp; q="1;2"',
    'image/avif',
    'image/bmp',
    'audio/mpeg',
    'video/mp4; codecs=avc1',
    'audio/vnd.x-y'
  ].flatMap(type => [200, 206].map(status => [[type], policy, status] as const)),
  ...[
    'text/html',
    'image/svg',
    'application/pdfx',
    'xapplication/pdf',
    'application/xhtml+xml',
    'audio/x+xml',
    'video/a.b+xml; c=d',
    'image/png, text/html',
    'image/png; a=b, text/html',
    ''
  ].map(type => [[type], `sandbox; ${policy}`] as const),
  [[], `sandbox; ${policy}`],
  [['image/png', 'text/html'], `sandbox; ${policy}`],
  [['image/png', 'image/png'], `sandbox; ${policy}`],
  [['application/pdf'], `sandbox; ${policy}`, 404],
  [['image/svg+xml; charset=utf-8'], `sandbox; ${policy}; style-src 'unsafe-inline'`]
]
test('every response has a policy with which it can run no script and send no form, and only pictures, PDF, audio and video have no sandbox', t => {
  for (const [types, expected, statusCode = 200] of policies) {
    const headers = selected([...types.flatMap(type => ['Content-Type', type]), 'Content-Security-Policy', 'x'], {
      statusCode
    })
    t.is(headers.get('content-security-policy'), expected, types.join())
  }
})

test('a 304 has neither a type nor a policy, because browsers change both separately in the response that they have stored', t => {
  const headers = selected(['Content-Type', 'text/html', 'ETag', '"x"'], { statusCode: 304 })
  t.deepEqual(
    [headers.has('content-type'), headers.has('content-security-policy'), headers.get('etag')],
    [false, false, '"x"']
  )
})

test('the names of the response headers that are not forwarded are known, except those of the connection', t => {
  const head = {
    statusCode: 200,
    rawHeaders: bytes(
      words`Set-Cookie a Server x server y ETag "1" Connection close Transfer-Encoding chunked Link <x>;rel=preload`
    )
  }
  t.deepEqual(namesDropped(head, selectResponse(head, { mapLocation: String, setsCookie: false })), [
    'set-cookie',
    'server',
    'link'
  ])
})

test('Content-Length is passed on unless the response is chunked or has the status 204', t => {
  t.deepEqual(selected(['Content-Length', '5']).get('content-length'), '5')
  t.false(selected(['Content-Length', '5', 'Transfer-Encoding', 'chunked']).has('content-length'))
  t.false(selected(['Content-Length', '0'], { statusCode: 204 }).has('content-length'))
  t.deepEqual(selected(['Content-Length', '5'], { statusCode: 304 }).get('content-length'), '5')
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
    t.is(selected(headers).get('cache-control'), expected)
    t.is(selected(headers, { setsCookie: true }).get('cache-control'), 'private, no-store')
  })
}

test('for any Cache-Control of the upstream, a shared cache is not allowed to store the response', t => {
  const names = words`public s-maxage=1 max-age=1 private private="a" PUBLIC proxy-revalidate " = , x="`
  const directive = fc.constantFrom(...names, ' ')
  fc.assert(
    fc.property(fc.array(directive, { maxLength: 6 }), directives => {
      const value = String(selected(['Cache-Control', directives.join(',')]).get('cache-control'))
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
  t.is(selected([]).get('vary'), 'Cookie')
  t.is(selected(['Vary', 'Accept', 'Vary', 'Origin']).get('vary'), 'Accept, Origin, Cookie')
  t.is(selected(['Vary', 'accept, COOKIE']).get('vary'), 'accept, COOKIE')
  t.is(selected(['Vary', '*']).get('vary'), '*')
})
