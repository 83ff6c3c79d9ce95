import test from 'ava'
import { fencedLines, tableRows } from '../helpers/markdown.js'
import { packageJson, readText } from '../helpers/repository.js'
import { serverRoutes } from './openapi.js'

test('docs/reference/routes.md lists the health routes, and in a table every route under /api/auth and no other', t => {
  const text = readText('docs/reference/routes.md')
  const paths = tableRows(text).flatMap(([cell = '']) => /^`(\/api\/auth\/[\w.-]+)`$/.exec(cell)?.[1] ?? [])
  t.deepEqual(
    paths.toSorted(),
    serverRoutes().filter(path => path.startsWith('/api/auth/'))
  )
  for (const path of serverRoutes().filter(path => !path.startsWith('/api/'))) t.true(text.includes(path), path)
})

test('the README shows the command for the demo and the command for the tests before its first section', t => {
  const [firstScreen = ''] = readText('README.md').split('\n## ', 1)
  t.deepEqual(fencedLines(firstScreen, 'sh'), ['npm ci && npm run demo', 'npm ci && npm test'])
})

test('the package file that the documents mention has the name that npm pack gives it', t => {
  const { name, version } = packageJson
  const files = new Set(
    ['README.md', 'docs/start/aps.md']
      .map(readText)
      .join('\n')
      .match(/[\w.-]+\.tgz/g)
  )
  t.deepEqual([...files], [`${name}-${version}.tgz`])
})

test('package.json contains no repository, bugs or homepage address, because the project has none yet', t => {
  for (const field of ['repository', 'bugs', 'homepage']) t.false(field in packageJson, field)
})
