import test from 'ava'
import { parseRules } from '#src/config/types/proxy-rules.js'
import { createMapLocation } from '#src/web/proxy/response-headers.js'
import { createRoutes } from '#src/web/proxy/routes.js'

const { rules } = parseRules([
  'GET /api/hubs/first https://other.example/first',
  'GET,POST /api/hubs/** https://api.example/project/v1/hubs/**',
  'POST /api/issues/*/issues/** https://api.example/issues/v1/projects/*/issues/**',
  'GET /backend/** http://127.0.0.1:3000/**'
])
const map = createMapLocation(createRoutes(rules, 'https://app.example'), '/base')

const table: readonly (readonly [rule: number, location: string, expected: string | undefined])[] = [
  [2, 'https://api.example/project/v1/hubs/b.1', '/base/api/hubs/b.1'],
  [2, '/project/v1/hubs/b.1?x=1&y=%20#frag', '/base/api/hubs/b.1?x=1&y=%20#frag'],
  [2, 'next', '/base/api/hubs/next'],
  [2, '/project/v1/hubs/a%2fb', '/base/api/hubs/a%2fb'],
  [2, '../hubs/', '/base/api/hubs/'],
  [2, '?page=2', '/base/api/hubs/asked?page=2'],
  [2, '//api.example/project/v1/hubs', '/base/api/hubs'],
  [2, 'https://api.example:443/project/v1/hubs', '/base/api/hubs'],
  [2, '/project/v1/hubs/Z\xfcrich', '/base/api/hubs/Z%FCrich'],
  [2, 'https://api.example/project/v1/hubsX', 'https://api.example/project/v1/hubsX'],
  [2, '/project/v1/other', 'https://api.example/project/v1/other'],
  [2, '/project/v1/hubs/../../../secret', 'https://api.example/secret'],
  [2, 'https://s3.example/file?signature=x', 'https://s3.example/file?signature=x'],
  [2, 'http://api.example/project/v1/hubs/x', 'http://api.example/project/v1/hubs/x'],
  [2, 'https://user@api.example/project/v1/hubs/x', 'https://user@api.example/project/v1/hubs/x'],
  // This server would reject the path, or an earlier rule would send it to another target.
  [2, '/project/v1/hubs/a%2f%2e%2e%2fb', 'https://api.example/project/v1/hubs/a%2f%2e%2e%2fb'],
  [2, '/project/v1/hubs/a//b', 'https://api.example/project/v1/hubs/a//b'],
  [2, '/project/v1/hubs/first', 'https://api.example/project/v1/hubs/first'],
  // The rule does not allow GET, but its path belongs to this server.
  [3, '/issues/v1/projects/7/issues/42', '/base/api/issues/7/issues/42'],
  [3, '/issues/v1/projects/7', 'https://api.example/issues/v1/projects/7'],
  [4, '/', '/base/backend/'],
  [4, '/x/y', '/base/backend/x/y'],
  [2, 'javascript:alert(1)', undefined],
  [2, 'data:text/html,x', undefined],
  [2, 'file:///etc/passwd', undefined],
  [2, 'http://[', undefined],
  [2, 'https://exa mple/', undefined]
]
for (const [number, location, expected] of table) {
  test(`rule ${number} maps the Location ${JSON.stringify(location)} to ${expected}`, t => {
    const rule = rules[number - 1]
    if (!rule) throw new Error('no such rule')
    const target = { 2: '/project/v1/hubs/asked?q', 3: '/issues/v1/projects/7/issues', 4: '/asked' }[number] ?? '/'
    t.is(map(location, { rule, target }), expected)
  })
}
