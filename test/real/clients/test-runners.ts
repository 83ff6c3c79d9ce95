// Test runners: a test of an application with `platform-auth-server/testing`, as docs/pages/testing.md names them. Each runner runs the
// package in a realm of its own, or with other globals than those of Node.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fencedBlocks } from '../../helpers/markdown.js'
import { readText } from '../../helpers/repository.js'
import type { Program } from './lab.js'

const scenario = `import { startTestServer } from 'platform-auth-server/testing'
import addRoutes from './routes.mjs'

export async function scenario(expect) {
  const settings = { mode: 'dual', redis: { url: 'redis://localhost' }, session: { store: 'redis' } }
  const server = await startTestServer({ settings, extension: addRoutes })
  try {
    expect((await server.newBrowser().fetch('/api/hubs')).status).toBe(401)
    const ada = await server.signIn('Ada Lovelace')
    expect(await (await ada.fetch('/api/hubs')).json()).toEqual({ hasToken: true })
    expect((await ada.fetch('/demo/expire', { method: 'POST' })).status).toBe(204)
    expect((await ada.fetch('/api/auth/token')).status).toBe(200)
    const abort = new AbortController()
    setTimeout(() => abort.abort(new Error('enough')), 100)
    await expect(ada.fetch('/api/never', { signal: abort.signal })).rejects.toThrow('enough')
    expect((await ada.open('/api/auth/logout')).redirected).toBe(true)
  } finally {
    await server.close()
  }
}
`

const component = (page: string) => fencedBlocks(readText(page)).find(({ language }) => language === 'jsx')?.text ?? ''

const files = {
  'package.json': '{"type": "module"}',
  // A test server does not read this file. It would stop every other server.
  '.env': 'PORT=not a port\n',
  'scenario.mjs': scenario,
  'routes.mjs': `export default function (app, { requireTokens, Router }) {
  const router = new Router()
  router.get('/api/hubs', requireTokens, ctx => {
    ctx.body = { hasToken: ctx.state.tokens.internal.access_token.length > 0 }
  })
  router.get('/api/never', () => new Promise(() => {}))
  app.use(router.routes())
}
`,
  'vitest/one.test.mjs': `import { expect, test } from 'vitest'
import { scenario } from '../scenario.mjs'
test('the application', () => scenario(expect), 60_000)
`,
  'react/account.jsx': component('docs/pages/sign-in.md'),
  'react/account.test.jsx': component('docs/pages/testing.md'),
  'jest/one.test.mjs': `import { expect, test } from '@jest/globals'
import { scenario } from '../scenario.mjs'
test('the application', () => scenario(expect), 60_000)
`
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
