// Which requests the proxy forwards, and the exact target. A request whose path is not in its normal form is never forwarded.
import test from 'ava'
import { parseRules } from '#src/config/types/proxy-rules.js'
import { createRoutes } from '#src/web/proxy/routes.js'
import { words } from '../helpers/words.js'

const rules = [
  'GET /api/hubs/** https://api.example/project/v1/hubs/**',
  'GET,POST /api/issues/*/issues https://api.example/issues/v1/projects/*/issues',
  'POST /api/graphql https://api.example/aec/graphql',
  'GET /*/wild/** https://wild.example/*/**',
  'GET /only/* https://only.example/*'
]
const find = createRoutes(parseRules(rules).rules, 'https://app.example')
const forwarded = (method: string, target: string) => {
  const route = find(method, target)
  return route?.kind === 'forward' ? `${route.rule.targetOrigin}${route.target}` : route?.kind
}

const table: readonly (readonly [method: string, target: string, expected: string | undefined])[] = [
  ['GET', '/api/hubs', 'https://api.example/project/v1/hubs'],
  ['HEAD', '/api/hubs/', 'https://api.example/project/v1/hubs/'],
  ['GET', '/api/hubs/b.1/projects/', 'https://api.example/project/v1/hubs/b.1/projects/'],
  ['GET', '/api/hubs/a%20b;c=1/%C3%BC', 'https://api.example/project/v1/hubs/a%20b;c=1/%C3%BC'],
  ['GET', '/api/hubs?', 'https://api.example/project/v1/hubs?'],
  ['GET', '/api/hubs?a=/../b//c\\|{}^&%zz&%2e%2e', 'https://api.example/project/v1/hubs?a=/../b//c\\|{}^&%zz&%2e%2e'],
  ['GET', '/api/hubs?x=\xfc%00', 'https://api.example/project/v1/hubs?x=\xfc%00'],
  ['POST', '/api/issues/7/issues', 'https://api.example/issues/v1/projects/7/issues'],
  ['POST', '/api/graphql', 'https://api.example/aec/graphql'],
  ['GET', '/x/wild/api/auth/token', 'https://wild.example/x/api/auth/token'],
  ['GET', '//api/hubs?x', 'https://api.example/project/v1/hubs?x'],
  ['GET', '///api/hubs//x', 'inexact'],
  ['GET', '//elsewhere/x', undefined],
  ['GET', '//api/auth/token', undefined],
  ['DELETE', '/api/hubs/a%2Fb', 'wrongMethod'],
  ['GET', 'https://app.example/api/hubs?x', 'https://api.example/project/v1/hubs?x'],
  ['GET', 'HTTPS://APP.example:443/api/hubs', 'https://api.example/project/v1/hubs'],
  // A prefix matches whole segments only, and is case-sensitive.
  ['GET', '/api/hubsX', undefined],
  ['GET', '/API/hubs', undefined],
  ['GET', '/api/Hubs', undefined],
  ['GET', '/api/%68ubs', undefined],
  ['GET', '/api/graphql/', undefined],
  ['GET', '/api/issues//issues', 'inexact'],
  ['GET', '/api/issues/issues', undefined],
  ['GET', '/api', undefined],
  ['GET', '/', undefined],
  ['GET', '/only/', undefined],
  ['GET', '/only/a/b', undefined],
  // Paths that this server handles itself.
  ['GET', '/api/auth', undefined],
  ['GET', '/api/auth/token', undefined],
  ['GET', '/api/auth/../hubs', undefined],
  ['GET', '/healthz', undefined],
  ['GET', '/healthz/wild/x', undefined],
  ['GET', '/readyz/wild', undefined],
  // Methods that the rule of the path does not allow.
  ['DELETE', '/api/hubs/x', 'wrongMethod'],
  ['OPTIONS', '/api/hubs/x', 'wrongMethod'],
  ['TRACE', '/api/hubs/x', 'wrongMethod'],
  ['get', '/api/hubs/x', 'wrongMethod'],
  ['GET', '/api/graphql', 'wrongMethod'],
  // Paths without a rule, which other parts of the server handle.
  ['GET', '/a//b', undefined],
  ['GET', '/elsewhere/..%2f', undefined],
  ['GET', '/index.html%00', undefined],
  ['OPTIONS', '*', undefined],
  ['GET', 'https://app.example/index.html', undefined],
  ['GET', 'https://other.example/index.html', undefined]
]
for (const [method, target, expected] of table) {
  test(`${method} ${JSON.stringify(target)} gives ${expected ?? 'no route of the proxy'}`, t =>
    t.is(forwarded(method, target), expected))
}

const inexact = words`
  /api/hubs/../x /api/hubs/%2e%2e/x /api/hubs/a%2f../b /api/hubs\..\x /api/hubs/\x /api//hubs //api//hubs /api/hubs//x
  /api/hubs/%00 /api/hubs/%zz /api/hubs/..;/x /api/hubs/..%252fadmin /x/..%25252fapi/hubs /api/hubs/x#y /api/hubs?x#y
  /x/../api/hubs /x/%2e%2e/api/hubs /api/x/..%2fhubs /api/%2e/hubs /api%2fhubs /api\hubs /%2e/api/hubs
  https://other.example/api/hubs http://app.example/api/hubs https://app.example:8443/api/hubs ftp://x/api/hubs
  https://app.example@evil.example/api/hubs https://user@other.example/api/hubs https://app.example/api/hubs/../x`
for (const target of [...inexact, '/api/hubs/\xfc']) {
  test(`${JSON.stringify(target)} is rejected as inexact`, t => t.is(forwarded('GET', target), 'inexact'))
}

test('the allowed methods of a path are those of all rules that match the path', t => {
  const both = createRoutes(
    parseRules(['GET /a/* https://a.example/*', 'POST,DELETE /a/b https://b.example/b']).rules,
    'https://app.example'
  )
  t.deepEqual(both('PUT', '/a/b'), { kind: 'wrongMethod', allow: 'GET, HEAD, POST, DELETE' })
  t.is(both('DELETE', '/a/b')?.kind, 'forward')
})

test('the first rule that matches the path and the method is used', t => {
  const rules = [
    'POST /a/** https://1.example/**',
    'GET /a/b https://2.example/b',
    'GET,POST /a/** https://3.example/**'
  ]
  const find = createRoutes(parseRules(rules).rules, 'https://app.example')
  const rule = (method: string, target: string) => {
    const route = find(method, target)
    return route?.kind === 'forward' ? rules.indexOf(route.rule.text) + 1 : route?.kind
  }
  t.deepEqual([rule('POST', '/a/b'), rule('GET', '/a/b'), rule('GET', '/a/c'), rule('HEAD', '/a/b')], [1, 2, 3, 2])
})
