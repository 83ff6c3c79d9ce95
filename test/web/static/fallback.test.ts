// The settings `fallback` and `hashedAssets`, which are meant for single-page applications.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import test, { type ExecutionContext } from 'ava'
import { startTestServer } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { words } from '../../helpers/words.js'
import { handledBy } from '../support.js'

const shell = '<!doctype html><title>The application</title>'
const page = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

async function startApplication(t: ExecutionContext) {
  const wwwroot = await tempFolder(t, {
    'index.html': shell,
    'index.html.gz': gzipSync(shell),
    'about.html': 'about',
    'assets/app-1a2b3c4d.js': 'let a',
    'assets/page.html': 'a page',
    'assets/sub/index.html': 'a folder',
    'app.js': 'let b'
  })
  const settings = { wwwroot, fallback: 'index.html', hashedAssets: ['assets', 'fonts/all'] }
  const parts = handledBy(async (ctx, next) => {
    if (ctx.path === '/own') ctx.body = 'custom route'
    else await next()
  })
  return { ...(await startTestServer(t, { settings, parts })), wwwroot }
}

test('a path without a file gets the fallback page, by GET and HEAD, and the request log has that path', async t => {
  const { browser, logs } = await startApplication(t)
  for (const path of ['/models', '/models/7?view=top', '/assets/no-such-page', '/a.b/c', '/apis', '/%C3%BC']) {
    const answer = await browser.get(path, { headers: page })
    t.deepEqual([answer.statusCode, answer.text()], [200, shell], path)
    t.like(answer.headers, {
      'cache-control': 'no-cache',
      'content-type': 'text/html; charset=utf-8',
      'x-content-type-options': 'nosniff'
    })
    t.regex(String(answer.headers.vary), /\bAccept\b(?!-)/)
    const head = await browser.request('HEAD', path, { headers: page })
    t.deepEqual([head.statusCode, head.headers['content-length'], head.text()], [200, String(shell.length), ''])
  }
  t.truthy(logs.find(({ event, path }) => event === 'request' && path === '/models/7'))
  t.false(logs.entries.some(({ path }) => String(path).includes('index.html')))
  t.is((await browser.get('/about.html', { headers: page })).text(), 'about')
  t.is((await browser.get('/own', { headers: page })).text(), 'custom route')
})

test('a request that does not prefer HTML gets 404 and not the fallback page, and so does every request if its file was deleted', async t => {
  const { browser, wwwroot } = await startApplication(t)
  const others = ['*/*', 'application/json', 'image/avif,image/webp,*/*;q=0.8', 'application/json, text/html;q=0.9']
  for (const accept of others) {
    const answer = await browser.get('/models/7', { headers: { accept } })
    t.is(answer.statusCode, 404, accept)
    t.is(answer.json().error, 'not_found')
  }
  await rm(join(wwwroot, 'index.html'))
  await rm(join(wwwroot, 'index.html.gz'))
  const answer = await browser.get('/models', { headers: page })
  t.is(answer.statusCode, 404)
  t.regex(answer.text(), /There is no page here/)
})

test('the fallback does not apply to API paths, hidden files and malformed paths', async t => {
  const { browser } = await startApplication(t)
  const reserved = words`/api /api/ /api/hubs /api/auth /api/auth/nothing /.env /a/.git/config /%2eenv`
  for (const path of reserved) {
    t.is((await browser.get(path, { headers: page })).statusCode, 404, path)
  }
  t.is((await browser.get('/%ff', { headers: page })).statusCode, 400)
  t.is((await browser.request('POST', '/models', { headers: page })).statusCode, 405)
  t.is((await browser.get('/api/auth/profile', { headers: page })).statusCode, 401)
  t.is((await browser.get('/healthz', { headers: page })).json().status, 'ok')
})

test('hashed files may be cached for a year, and other files may not, whatever the spelling of the URL is', async t => {
  const { browser } = await startApplication(t)
  const aYear = 'public, max-age=31536000, immutable'
  const asset = await browser.get('/assets/app-1a2b3c4d.js')
  t.is(asset.headers['cache-control'], aYear)
  const etag = String(asset.headers.etag)
  const again = await browser.get('/%61ssets/app-1a2b3c4d.js', { headers: { 'if-none-match': etag } })
  t.is(again.statusCode, 304)
  t.is(again.headers['cache-control'], aYear)
  const others = ['/', '/about.html', '/assets/page.html', '/assets/sub/', '/assets/page', '/assets/../about.html']
  for (const path of [...others, '/assets/../app.js', '/assets//../app.js']) {
    const answer = await browser.get(path)
    t.is(answer.statusCode, 200, path)
    t.is(answer.headers['cache-control'], 'no-cache', path)
  }
  const encoded = ['/assets/%2e%2e/app.js', '/assets/.%2E/app.js', '/assets/..%2fapp.js', '/assets%2f..%2fapp.js']
  for (const path of ['/assets/app-00000000.js', ...encoded]) {
    const missing = await browser.get(path)
    t.is(missing.statusCode, 404, path)
    t.is(missing.headers['cache-control'], 'no-store', path)
  }
})
