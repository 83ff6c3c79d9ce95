// Custom routes: the errors of real HTTP clients and body parsers, and an application that koa-mount runs.
import { spawnSync } from 'node:child_process'
import type { Program } from './lab.js'

const program = `import http from 'node:http'
import axios from 'axios'
import createError from 'http-errors'
import Koa from 'koa'
import { koaBody } from 'koa-body'
import bodyParser from 'koa-bodyparser'
import mount from 'koa-mount'
import { ofetch } from 'ofetch'
import superagent from 'superagent'
import { requireTokens } from 'platform-auth-server'
import { startTestServer } from 'platform-auth-server/testing'

const api = http.createServer((_, response) => response.writeHead(401).end('{}'))
await new Promise(resolve => api.listen(0, '127.0.0.1', resolve))
const url = \`http://127.0.0.1:\${api.address().port}\`
const parsers = { '/koa-body': koaBody(), '/koa-bodyparser': bodyParser() }
const routes = {
  '/axios': () => axios.get(url),
  '/superagent': () => superagent.get(url),
  '/ofetch': () => ofetch(url, { retry: 0 }),
  '/throw': ctx => ctx.throw(429, 'slow down', { headers: { 'Retry-After': '7' } }),
  '/assert': ctx => ctx.assert(false, 409, 'locked'),
  '/http-errors': () => Promise.reject(createError(503, 'later', { expose: true })),
  '/koa-body': () => {},
  '/koa-bodyparser': () => {}
}
const shop = new Koa().use(requireTokens).use(ctx => {
  ctx.session.visits = (ctx.session.visits ?? 0) + 1
  ctx.body = { visits: ctx.session.visits }
})

const server = await startTestServer({
  settings: { log: { level: 'fatal' } },
  extension(app) {
    app.use(mount('/shop', shop))
    app.use((ctx, next) => {
      const route = routes[ctx.path]
      const parse = parsers[ctx.path] ?? ((_, then) => then())
      return route ? requireTokens(ctx, () => parse(ctx, () => route(ctx))) : next()
    })
  }
})
const ada = await server.signIn()
const seen = {}
for (const path of Object.keys(routes)) {
  const invalid = { method: 'POST', body: '{"a":', headers: { 'content-type': 'application/json' } }
  const response = await ada.fetch(path, path in parsers ? invalid : {})
  const { error_description } = await response.json()
  seen[path] = [response.status, error_description, response.headers.get('retry-after')]
}
await ada.fetch('/shop/cart')
seen['/shop'] = [await (await ada.fetch('/shop/cart')).json(), (await server.newBrowser().fetch('/shop/cart')).status]
await server.close()
api.close()
console.log(JSON.stringify(seen))
`

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
    const cwd = await lab.application({ 'package.json': '{"type": "module"}', 'program.mjs': program })
    const { stdout, stderr } = spawnSync(process.execPath, ['program.mjs'], { cwd, encoding: 'utf8' })
    if (stdout === '') lab.note(stderr)
    const seen = JSON.parse(stdout || '{}') as Readonly<Record<string, unknown>>
    for (const [path, response] of Object.entries(expected)) lab.check(path, seen[path], response)
  }
}
