import test from 'ava'
import { fencedLines, tableRows } from '../helpers/markdown.js'
import { readText } from '../helpers/repository.js'
import { serverRoutes } from './openapi.js'

test('the README lists the health routes, and in a table every route under /api/auth and no other', t => {
  const paths = tableRows(readText('README.md')).flatMap(
    ([cell = '']) => /^`(\/api\/auth\/[\w.-]+)`$/.exec(cell)?.[1] ?? []
  )
  t.deepEqual(
    paths.toSorted(),
    serverRoutes().filter(path => path.startsWith('/api/auth/'))
  )
  for (const path of serverRoutes().filter(path => !path.startsWith('/api/')))
    t.true(readText('README.md').includes(path), path)
})

test('the README shows the command for the demo and the command for the tests before its first section', t => {
  const [firstScreen = ''] = readText('README.md').split('\n## ', 1)
  t.deepEqual(fencedLines(firstScreen, 'sh'), ['npm ci && npm run demo', 'npm ci && npm test'])
})

test('the package file that the README mentions has the name that npm pack gives it', t => {
  const { name, version } = JSON.parse(readText('package.json')) as { name: string; version: string }
  const files = new Set(readText('README.md').match(/[\w.-]+\.tgz/g))
  t.deepEqual([...files], [`${name}-${version}.tgz`])
})

test('package.json contains no repository, bugs or homepage address, because the project has none yet', t => {
  const manifest = JSON.parse(readText('package.json')) as Record<string, unknown>
  for (const field of ['repository', 'bugs', 'homepage']) t.false(field in manifest, field)
})
