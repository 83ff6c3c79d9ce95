// Test runners: a test of an application with `platform-auth-server/testing`, as docs/pages/testing.md names them. Each runner runs the
// package in a realm of its own, or with other globals than those of Node.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fencedBlocks } from '../../helpers/markdown.js'
import { readText } from '../../helpers/repository.js'
import type { Program } from './lab.js'
import { filesOf } from './recipes.js'

const component = (page: string) => fencedBlocks(readText(page)).find(({ language }) => language === 'jsx')?.text ?? ''

const files = {
  'package.json': '{"type": "module"}',
  // A test server does not read this file. It would stop every other server.
  '.env': 'PORT=not a port\n',
  'react/account.jsx': component('docs/pages/sign-in.md'),
  'react/account.test.jsx': component('docs/pages/testing.md'),
  ...filesOf('test-runners')
}

const vitestRuns = [
  ['node', 'forks'],
  ['node', 'threads'],
  ['node', 'vmThreads'],
  ['node', 'vmForks'],
  ['happy-dom', 'forks'],
  ['happy-dom', 'threads'],
  ['edge-runtime', 'forks'],
  ['edge-runtime', 'threads']
] as const

export const testRunners: Program = {
  name: 'test-runners',
  packages: [
    'jest@30.5.2',
    'vitest@4.1.12',
    'happy-dom@21.0.4',
    '@edge-runtime/vm@5.0.0',
    'react@19.3.1',
    'react-dom@19.3.1',
    '@testing-library/react@16.3.3',
    '@testing-library/dom@10.4.2'
  ],
  async run(lab) {
    const cwd = await lab.application(files)
    const runs = (script: string, args: readonly string[], options: readonly string[] = []) => {
      const path = join(lab.folder, 'node_modules', script)
      const { status, stdout, stderr } = spawnSync(process.execPath, [...options, path, ...args], {
        cwd,
        encoding: 'utf8'
      })
      if (status !== 0) lab.note(`${stdout}${stderr}`)
      return status
    }
    const jest = ['--rootDir', '.', '--testMatch', '**/jest/*.test.mjs']
    lab.check('Jest with ES modules', runs('jest/bin/jest.js', jest, ['--experimental-vm-modules']), 0)
    for (const [environment, pool] of vitestRuns) {
      const args = ['run', 'vitest', '--environment', environment, '--pool', pool]
      lab.check(`Vitest, environment ${environment}, pool ${pool}`, runs('vitest/vitest.mjs', args), 0)
    }
    lab.check('Vitest, the documented test of a component', runs('vitest/vitest.mjs', ['run', 'react']), 0)
  }
}
