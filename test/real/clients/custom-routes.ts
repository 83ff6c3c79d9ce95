// Custom routes: the errors of real HTTP clients and body parsers, and an application that koa-mount runs.
import { spawnSync } from 'node:child_process'
import type { Program } from './lab.js'
import { filesOf } from './recipes.js'

const fault = [500, 'Something went wrong on this server.', null]
const expected = {
  '/axios': fault,
  '/superagent': fault,
  '/ofetch': fault,
  '/throw': [429, 'slow down', '7'],
  '/assert': [409, 'locked', null],
  '/http-errors': [503, 'later', null],
  '/koa-body': [400, 'Bad Request.', null],
  '/koa-bodyparser': [400, 'Bad Request.', null],
  '/shop': [{ visits: 2 }, 401]
}

export const customRoutes: Program = {
  name: 'custom-routes',
  packages: [
    'axios@1.21.1',
    'http-errors@2.0.1',
    'koa@3.3.0',
    'koa-body@8.0.1',
    'koa-bodyparser@4.4.1',
    'koa-mount@4.2.0',
    'ofetch@1.5.1',
    'superagent@10.4.2'
  ],
  async run(lab) {
    const cwd = await lab.application({ 'package.json': '{}', ...filesOf('custom-routes') })
    const { stdout, stderr } = spawnSync(process.execPath, ['program.mjs'], { cwd, encoding: 'utf8' })
    if (stdout === '') lab.note(stderr)
    const seen = JSON.parse(stdout || '{}') as Readonly<Record<string, unknown>>
    for (const [path, response] of Object.entries(expected)) lab.check(path, seen[path], response)
  }
}
