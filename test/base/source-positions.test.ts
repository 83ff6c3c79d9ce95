import { spawnSync } from 'node:child_process'
import test from 'ava'
import { repository } from '../helpers/repository.js'

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

test('a stack trace of the bundle names the files of src/, and other positions stay', t => {
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', SCRIPT], {
    cwd: repository,
    env: {}
  })
  const [stack = '', readable = ''] = JSON.parse(String(stdout)) as string[]
  t.regex(stack, /dist\/bundle\/[\w-]+\.js:\d+:\d+/)
  t.notRegex(readable, /dist\/bundle/)
  t.regex(readable, /\(\/.*\/src\/config\/\w+\.ts:\d+:\d+\)/)
  t.true(readable.endsWith('    at x (file:///nowhere/x.js:1:2)\n    at node:net:3:4'))
})
