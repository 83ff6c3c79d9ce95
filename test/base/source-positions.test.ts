import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import test from 'ava'
import { withSourcePositions } from '#src/base/source-positions.js'
import { repository } from '../helpers/repository.js'
import { runCommand } from '../helpers/run-command.js'
import { tempFolder } from '../helpers/temp-folder.js'

// The process of the tests runs with source maps, so a separate process throws the error.
const SCRIPT = `
import { createApp } from './dist/bundle/index.js'
import { withSourcePositions } from './dist/base/source-positions.js'
try {
  createApp({})
} catch ({ stack }) {
  const others = '\\n    at x (file:///nowhere/x.js:1:2)\\n    at node:net:3:4'
  console.log(JSON.stringify([stack, withSourcePositions(stack + others)]))
}`

test('a stack trace of the bundle names the files of src/, and other positions stay', async t => {
  const command = [process.execPath, '--input-type=module', '--eval', SCRIPT]
  const { stdout } = await runCommand(command, { cwd: repository, env: {} })
  const [stack = '', readable = ''] = JSON.parse(stdout) as string[]
  t.regex(stack, /dist\/bundle\/[\w-]+\.js:\d+:\d+/)
  t.notRegex(readable, /dist\/bundle/)
  t.regex(readable, /\(\/.*\/src\/config\/\w+\.ts:\d+:\d+\)/)
  t.true(readable.endsWith('    at x (file:///nowhere/x.js:1:2)\n    at node:net:3:4'))
})

for (const source of ['webpack://app/src/routes.ts', 'https://[', 'a%2fb.ts']) {
  test(`a position stays if its source map names ${source}, which is not a file`, async t => {
    const map = JSON.stringify({ version: 3, sources: [source], names: [], mappings: 'AAAA' })
    const folder = await tempFolder(t, { 'routes.js': '', 'routes.js.map': map })
    const stack = `Error: failed\n    at ${pathToFileURL(join(folder, 'routes.js'))}:1:1`
    t.is(withSourcePositions(stack), stack)
  })
}
