// The lists of headers that the proxy forwards in requests and in responses. These tests need no server.
import test from 'ava'
import fc from 'fast-check'
import { createRequestHeaders, namesNotSelected } from '#src/web/proxy/request-headers.js'
import { createResponseHeaders, namesDropped } from '#src/web/proxy/response-headers.js'
import { assertCases } from '../helpers/case-file.js'
import { words } from '../helpers/words.js'

const bytes = (headers: readonly string[]) => headers.map(text => Buffer.from(text, 'latin1'))

/** Parses `Name: value | Name`. */
function parse(fields: string): string[] {
  if (fields === '') return []
  return fields.split(' | ').flatMap(field => {
    const [name = '', value = 'v'] = field.split(/: ?(.*)/s)
    return [name, value]
  })
}

const print = (headers: readonly (readonly [name: string, value: string])[]) =>
  headers.map(([name, value]) => (value === 'v' ? name : `${name}: ${value}`)).join(' | ') || 'nothing'

const requestHeaders = (fields: string, more: string) => {
  const selected = createRequestHeaders([more])(parse(fields))
  return print(selected.flatMap((name, at) => (at % 2 === 0 ? [[name, selected[at + 1] as string] as const] : [])))
}

/** What each response has, unless it has something else. */
const USUAL = {
  'cache-control': 'private, no-store',
  vary: 'Cookie',
  'content-security-policy': "sandbox; default-src 'none'; form-action 'none'; base-uri 'none'",
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin'
}

function responseHeaders(fields: string, more: string, setsCookie: boolean) {
  const [, status, list = ''] = /^(\d+) ?(.*)$/s.exec(fields) ?? []
  const head = { statusCode: Number(status), rawHeaders: bytes(parse(list)) }
  const mapLocation = (location: string) => `mapped ${location}`
  return createResponseHeaders([more])(head, { mapLocation, setsCookie })
}

function unusual(headers: ReturnType<typeof responseHeaders>): string {
  const missing = Object.keys(USUAL).filter(name => !headers.has(name))
  const all = [...headers].flatMap(([name, values]) => [values].flat().map(value => [name, value] as const))
  const others = all.filter(([name, value]) => (USUAL as Record<string, string>)[name] !== value)
  return print([...others, ...missing.map(name => [`no ${name}`, 'v'] as const)])
}

test('the proxy forwards the headers on its lists, and protects the browser with its own', t =>
  assertCases(t, 'test/proxy/headers.txt', (fields, [setting = '']) => {
    const [, kind, more = '', and = ''] = /^(\w+) with (\S+)(.*)$/.exec(setting) ?? []
    return kind === 'request' ? requestHeaders(fields, more) : unusual(responseHeaders(fields, more, and !== ''))
  }))

test('the names of the headers that are not forwarded are known, except those that the proxy sets itself or that are about the connection', t => {
  const raw = words`Host h Cookie a X-Ads-Force true DNT 1 dnt 1 Connection x-b X-B 1`
  t.deepEqual(namesNotSelected(raw, createRequestHeaders([])(raw)), ['cookie', 'dnt', 'x-b'])
  const fields = 'Set-Cookie: a | Server: x | server: y | ETag: "1" | Connection: close | Transfer-Encoding: chunked'
  const head = { statusCode: 200, rawHeaders: bytes(parse(`${fields} | Link: <x>;rel=preload`)) }
  const selected = createResponseHeaders([])(head, { mapLocation: String, setsCookie: false })
  t.deepEqual(namesDropped(head, selected), ['set-cookie', 'server', 'link'])
})

test('a long Link header takes no long time', t => {
  t.false(responseHeaders(`200 Link: ${'<'.repeat(16_000)}`, 'X-More', false).has('link'))
})

test('for any Cache-Control of the upstream, a shared cache is not allowed to store the response', t => {
  const names = words`public s-maxage=1 max-age=1 private private="a" PUBLIC proxy-revalidate " = , x="`
  const directive = fc.constantFrom(...names, ' ')
  fc.assert(
    fc.property(fc.array(directive, { maxLength: 6 }), directives => {
      const value = String(
        responseHeaders(`200 Cache-Control: ${directives.join(',')}`, '', false).get('cache-control')
      )
      return (
        value.startsWith('private') &&
        !/(^|,)\s*(public|s-maxage|proxy-revalidate)\b/i.test(value.replace(/"[^"]*"/g, ''))
      )
    }),
    { numRuns: 5000 }
  )
  t.pass()
})
