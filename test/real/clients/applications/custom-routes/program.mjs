// The application of custom-routes.ts. It prints what its users see.
import http from 'node:http'
import axios from 'axios'
import createError from 'http-errors'
import Koa from 'koa'
import { koaBody } from 'koa-body'
import bodyParser from 'koa-bodyparser'
import mount from 'koa-mount'
import { ofetch } from 'ofetch'
import { requireTokens } from 'platform-auth-server'
import { startTestServer } from 'platform-auth-server/testing'
import superagent from 'superagent'

const api = http.createServer((_, response) => response.writeHead(401).end('{}'))
await new Promise(resolve => api.listen(0, '127.0.0.1', resolve))
const url = `http://127.0.0.1:${api.address().port}`
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
process.stdout.write(`${JSON.stringify(seen)}\n`)
