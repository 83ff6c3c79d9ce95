import test from 'ava'
import { tableRows } from '../helpers/markdown.js'
import { readText, readYaml } from '../helpers/repository.js'

/** The paths that the router and the health layer answer, as their sources name them. */
function routes(): string[] {
  const ofAuth = [...readText('src/http/auth-routes.ts').matchAll(/router\.get\('(\/[\w-]+)'/g)].map(
    ([, path]) => `/api/auth${path}`
  )
  const ofHealth = [...readText('src/http/health.ts').matchAll(/'(\/\w+z)'/g)].map(([, path = '']) => path)
  return [...new Set([...ofAuth, ...ofHealth])].toSorted()
}

test('there are routes to document', t => {
  t.true(routes().includes('/api/auth/login'))
  t.true(routes().includes('/readyz'))
})

test("the README's table has every route under /api/auth and no other", t => {
  const paths = tableRows(readText('README.md')).flatMap(
    ([cell = '']) => /^`(\/api\/auth\/[\w-]+)`$/.exec(cell)?.[1] ?? []
  )
  t.deepEqual(
    paths.toSorted(),
    routes().filter(path => path.startsWith('/api/auth/'))
  )
})

test('the README names the health routes', t => {
  for (const path of routes().filter(path => !path.startsWith('/api/')))
    t.true(readText('README.md').includes(path), path)
})

test('the OpenAPI document has every route', t => {
  const [{ paths }] = readYaml('docs/openapi.yaml') as [{ paths: Record<string, unknown> }]
  for (const path of routes()) t.true(path in paths, path)
})
