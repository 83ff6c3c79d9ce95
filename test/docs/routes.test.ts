import test from 'ava'
import { tableRows } from '../helpers/markdown.js'
import { readText } from '../helpers/repository.js'
import { serverRoutes } from './server-routes.js'

test('the table in the README lists every route under /api/auth and no other', t => {
  const paths = tableRows(readText('README.md')).flatMap(
    ([cell = '']) => /^`(\/api\/auth\/[\w.-]+)`$/.exec(cell)?.[1] ?? []
  )
  t.deepEqual(
    paths.toSorted(),
    serverRoutes().filter(path => path.startsWith('/api/auth/'))
  )
})

test('the README lists the health routes', t => {
  for (const path of serverRoutes().filter(path => !path.startsWith('/api/')))
    t.true(readText('README.md').includes(path), path)
})
