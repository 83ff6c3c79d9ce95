import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { breaches, type Sources } from './helpers/architecture.js'

const root = fileURLToPath(new URL('..', import.meta.url))

async function read(folder: string): Promise<Sources> {
  const paths = await readdir(join(root, folder), { recursive: true })
  const sources: Record<string, string> = {}
  for (const path of paths.filter(path => path.endsWith('.ts'))) {
    sources[path.replaceAll('\\', '/')] = await readFile(join(root, folder, path), 'utf8')
  }
  return sources
}

test('all source files keep the import rules of ARCHITECTURE.md, and neither files nor folders form a cycle', async t => {
  const sources = await read('src')
  t.true(['index.ts', 'app.ts', 'server/serve.ts', 'config/settings.ts'].every(path => path in sources))
  t.deepEqual(breaches(sources), [])
})

test('only one helper imports nock', async t => {
  const importers = Object.entries(await read('test')).filter(([, text]) => /(from|import|\() ?'nock'/.test(text))
  const paths = importers.map(([path]) => path)
  t.deepEqual(paths, ['helpers/nock.ts'])
})
