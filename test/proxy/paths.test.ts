// What the proxy does with the targets of requests, and with the Location headers of responses.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import test from 'ava'
import fc from 'fast-check'
import { parseRules } from '#src/config/types/proxy-rules.js'
import { createMapLocation } from '#src/web/proxy/response-headers.js'
import { createRoutes } from '#src/web/proxy/routes.js'
import { assertCases } from '../helpers/case-file.js'
import { words } from '../helpers/words.js'

function parse(rules: readonly string[]) {
  const { rules: parsed, problems } = parseRules(rules)
  if (problems.length > 0) throw new Error(problems.join())
  return parsed
}

function finder(rules: readonly string[]) {
  const find = createRoutes(parse(rules), 'https://app.example')
  return (method: string, target: string): string => {
    const route = find(method, target)
    if (route === undefined) return 'no route of the proxy'
    if (route.kind === 'wrongMethod') return `wrongMethod, ${route.allow}`
    return route.kind === 'forward' ? `${route.rule.targetOrigin}${route.target}` : route.kind
  }
}

// Serial, because it blocks the process for a second.
test.serial('the proxy forwards the targets that its rules allow, byte for byte, and no others', t =>
  assertCases(t, 'test/proxy/paths.txt', (request, rules) => {
    const space = request.indexOf(' ')
    return finder(rules)(request.slice(0, space), request.slice(space + 1))
  })
)

test('a Location that a rule covers becomes a path of this server, and every other http URL stays', t =>
  assertCases(t, 'test/proxy/locations.txt', (location, [requested = '', ...rules]) => {
    const parsed = parse(rules)
    const [target = '', number] = requested.split(' of rule ')
    const map = createMapLocation(createRoutes(parsed, 'https://app.example'), '/base')
    const rule = parsed[Number(number) - 1]
    if (!rule) throw new Error('no such rule')
    return map(location, { rule, target }) ?? 'removed'
  }))

test('a long path is forwarded, unless it has too many readings', t => {
  const find = finder(['GET /a/** https://api.example/a/**'])
  for (const path of [`/a/${'folder%20name%2F'.repeat(250)}`, `/a/${'name/'.repeat(6000)}`])
    t.is(find('GET', path), `https://api.example${path}`)
  t.is(find('GET', `/a/${'folder%20name%2F'.repeat(1000)}`), 'inexact')
})

test('the routes that are remembered keep no query in memory', t => {
  const find = finder(['GET /a/** https://api.example/a/**'])
  const query = 'q'.repeat(15_000)
  // Like the URL of a request, the target is not put together from other strings.
  const ask = (index: number) => find('GET', Buffer.from(`/a/folder/file-${index}?${query}`).toString())
  setFlagsFromString('--expose-gc')
  const heapUsed = () => {
    runInNewContext('gc')()
    return process.memoryUsage().heapUsed
  }
  ask(0)
  const before = heapUsed()
  for (let index = 1; index <= 1000; index++) ask(index)
  t.true(heapUsed() - before < 5_000_000)
})

test('a decision that is remembered is the decision for each path, rule and method', t => {
  const list = [
    'GET /a/b/** https://api.example/b/** token=public',
    'GET,POST /a/** https://api.example/**',
    'POST /c/*/d https://api.example/*'
  ]
  const piece = fc.constantFrom(...words`/ /a /b /c /d %2F %62 %20 %2e ; x B %252F %CC%81 .`)
  const pieces = fc.array(piece, { minLength: 1, maxLength: 6 })
  const request = fc.tuple(fc.constantFrom('GET', 'HEAD', 'POST', 'PUT'), pieces)
  const find = finder(list)
  fc.assert(
    fc.property(fc.array(request, { minLength: 2, maxLength: 8 }), requests =>
      [...requests, ...requests].every(([method, pieces]) => {
        const path = `/a${pieces.join('')}`
        return find(method, path) === finder(list)(method, path)
      })
    ),
    { numRuns: 300 }
  )
  t.pass()
})
