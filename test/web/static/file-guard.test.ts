// Static files that only users who are signed in may read (access.files), as attackers without a session see them.
import fs from 'node:fs'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import test, { type ExecutionContext } from 'ava'
import type { Context, Next } from 'koa'
import type { TestSettings } from '../../helpers/config.js'
import { askRaw } from '../../helpers/raw.js'
import { signIn, startTestServer } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { words } from '../../helpers/words.js'
import { handledBy, statusesOf } from '../support.js'

// All protected files contain this string.
const marker = 'for users only'
const page = `<!doctype html><title>Report</title>${marker}`
const large = Buffer.alloc(200_000, marker)

const files = {
  'www/index.html': page,
  'www/index.html.gz': gzipSync(page),
  'www/welcome.html': 'welcome',
  'www/welcome.css': 'a{}',
  'www/about.html': page,
  'www/reports/index.html': page,
  'www/reports/data.json': JSON.stringify({ marker }),
  'www/reports/data.json.gz': gzipSync(marker),
  'www/reports/only-packed.txt.gz': gzipSync(marker),
  'www/reports/model.bin': large,
  'www/assets/app-1a2b3c4d.js': `"${marker}"`,
  'www/caf\u00e9 1/page.html': page
}

async function start(t: ExecutionContext, patterns = '!/welcome.html !/welcome.css /**', settings: TestSettings = {}) {
  const folder = await tempFolder(t, files)
  const www = join(folder, 'www')
  await symlink('../reports/data.json', join(www, 'assets/link.json'))
  await symlink('../welcome.css', join(www, 'reports/public.css'))
  await symlink('reports', join(www, 'public'))
  const guarded = { ...settings, wwwroot: www, access: { files: patterns.split(' '), ...settings.access } }
  const started = await startTestServer(t, { settings: guarded, parts: handledBy(customRoute) })
  started.clock.advanceSeconds(3)
  /** Sends one request byte for byte, without cookies. */
  const ask = (target: string, headers?: string, method?: string) =>
    askRaw(started.server.port, target, headers, method)
  return { ...started, ask }
}

async function customRoute(ctx: Context, next: Next) {
  if (ctx.path === '/own') ctx.body = 'custom route'
  else await next()
}

const locked = words`
  / /index.html /index /about /about.html /reports /reports/ /reports/index.html /reports/index /reports/data.json
  /reports/data.json.gz /reports/only-packed.txt.gz /reports/model.bin /assets/app-1a2b3c4d.js /assets/link.json
  /public/data.json /caf%C3%A9%201/page`

// Other spellings of these URLs. Some of them do not exist, and none of them may return the content of a file.
const spellings = words`
  /%69ndex.html /INDEX.HTML /./index.html /%2e/index.html //index.html /%2Findex.html /index.html/ /index.html%2e
  /welcome.html/../index.html /welcome.html%2f..%2findex.html /welcome.css/..%2findex.html /index.html%00.css
  /index.html;welcome.css /index.html?/welcome.css /index.html%3f/welcome.css /index.html%23welcome.css
  /reports%2fdata.json /reports%5cdata.json /reports\data.json /reports//data.json /reports/./data.json
  /reports/x/../data.json /REPORTS/data.json /Reports/DATA.JSON /%72eports/data%2ejson /reports/data.json%20
  /reports/data.json::$DATA /reports/only-packed.txt /public/index /public%2findex.html
  /caf%c3%a9%201/%70age.html /cafe%CC%81%201/page.html
  http://localhost/reports/data.json http://evil.example/index.html`

const conditions = [
  '',
  'Range: bytes=0-10\r\n',
  'If-None-Match: *\r\n',
  'If-Modified-Since: Wed, 01 Jan 2100 00:00:00 GMT\r\n',
  'If-Range: "x"\r\nRange: bytes=-5\r\n',
  'Accept-Encoding: gzip, br\r\n',
  'Accept: text/html\r\n',
  'Authorization: Bearer x\r\n',
  'Cookie: platform_session=1abc\r\n',
  'X-Forwarded-For: 127.0.0.1\r\nX-Original-URL: /welcome.html\r\nX-Rewrite-URL: /welcome.html\r\n'
]

test('without a session, no spelling, condition, range or method returns a protected file or tells anything about it', async t => {
  const { ask } = await start(t)
  for (const target of [...locked, ...spellings]) {
    for (const headers of conditions) {
      for (const method of ['GET', 'HEAD']) {
        const { statusCode, head, body } = await ask(target, headers, method)
        const name = `${method} ${target} ${headers}: ${statusCode}`
        if (locked.includes(target)) t.is(statusCode, 401, name)
        else t.true([400, 401, 404].includes(statusCode), name)
        t.false(body.includes(marker), name)
        t.notRegex(head, /^(etag|last-modified|content-range|accept-ranges|content-encoding|location):/im, name)
        t.regex(head, /^cache-control: (private, )?no-store\r?$/im, name)
        if (statusCode === 401) t.regex(head, /^vary: .*cookie/im, name)
      }
    }
  }
})

test('public files need no session, also by links and in other spellings', async t => {
  const { ask, browser } = await start(t)
  for (const target of words`/welcome.html /welcome /%77elcome.html /welcome.css /welcome.css?v=1`) {
    const { statusCode, header } = await ask(target)
    t.deepEqual([statusCode, header('cache-control')], [200, 'no-cache'], target)
    t.notRegex(header('vary') ?? '', /cookie/i)
  }
  // The link is in a protected folder, so it is protected, although its target is public.
  t.is((await ask('/reports/public.css')).statusCode, 401)
  for (const path of ['/own', '/healthz', '/api/auth/client.js']) t.is((await browser.get(path)).statusCode, 200, path)
  t.is((await browser.get('/missing')).statusCode, 401)
})

test('without a session, a protected file that does not exist has the response of one that exists', async t => {
  const { ask, browser } = await start(t, '/reports /about.html !/index.html', { fallback: 'index.html' })
  const withoutNames = ({ head, body }: Awaited<ReturnType<typeof ask>>) =>
    (head + body)
      .replace(/^(date|x-request-id|content-length): .*$/gim, '')
      .replace(/[\da-f]{8}-[\da-f-]{27}|return_to=[^"]*/g, '')
  const html = 'Accept: text/html\r\n'
  for (const [existing, missing] of [
    ['/reports/data.json', '/reports/none.json'],
    ['/reports/data.json', '/REPORTS/data.json'],
    ['/reports', '/reports/none'],
    ['/reports/', '/reports/none/'],
    ['/about.html', '/About.html'],
    ['/about', '/ABOUT']
  ] as const) {
    for (const headers of ['', html, 'Sec-Fetch-Site: cross-site\r\n']) {
      for (const method of ['GET', 'HEAD']) {
        const [one, other] = [await ask(existing, headers, method), await ask(missing, headers, method)]
        t.is(withoutNames(other), withoutNames(one), `${method} ${missing} ${headers}`)
        t.true([401, 403].includes(other.statusCode))
      }
    }
  }
  t.is((await ask('/elsewhere', html)).statusCode, 200)
  await signIn(browser)
  t.is((await browser.get('/reports/none.json')).statusCode, 404)
  const page = await browser.get('/reports/none', { headers: { accept: 'text/html' } })
  t.is(page.statusCode, 200, 'the router of a single-page application handles this path')
})

test('a document gets the sign-in page, which returns to it, and any other request gets 401 with an empty body', async t => {
  const { browser } = await start(t)
  for (const path of ['/reports/?x=%2F&y=1', '/about', '/reports']) {
    const document = await browser.navigate(path)
    t.is(document.statusCode, 401)
    t.like(document.headers, { 'content-type': 'text/html; charset=utf-8', 'session-status': 'signed-out' })
    t.true(document.text().includes(`href="/api/auth/login?return_to=${encodeURIComponent(path)}"`), document.text())
  }
  for (const [path, dest] of [
    ['/reports/data.json', 'empty'],
    ['/assets/app-1a2b3c4d.js', 'script'],
    ['/reports/', 'empty'],
    ['/reports/model.bin', 'image']
  ] as const) {
    const other = await browser.fetch(path, { dest })
    t.deepEqual([other.statusCode, other.body.length, other.headers['content-type']], [401, 0, undefined], path)
  }
  const back = await browser.navigate('/api/auth/login?return_to=%2Freports%2F%3Fx%3D1', { follow: true })
  t.is(back.url.pathname + back.url.search, '/reports/?x=1')
  t.is(back.text(), page)
})

test('with a session, files are served with ranges and 304, and no shared cache may store them', async t => {
  const { browser } = await start(t, undefined, { hashedAssets: ['assets'] })
  await signIn(browser)
  for (const path of locked) {
    const { statusCode, headers } = await browser.get(path, { follow: true })
    t.is(statusCode, 200, path)
    const isPage = String(headers['content-type']).startsWith('text/html')
    t.is(headers['cache-control'], isPage ? 'private, no-store' : 'private, no-cache', path)
    t.regex(String(headers.vary), /Cookie/)
    t.regex(String(headers.vary), /Accept-Encoding/)
    const etag = String(headers.etag)
    const again = await browser.get(path, { follow: true, headers: { 'if-none-match': etag } })
    t.is(again.statusCode, 304, path)
    t.is(again.headers['cache-control'], headers['cache-control'])
    t.is((await browser.get(path, { follow: true, headers: { range: 'bytes=0-3' } })).statusCode, 206, path)
    const outside = await browser.clone().request('GET', path, { headers: { cookie: '', 'if-none-match': etag } })
    t.is(outside.statusCode, 401, 'the ETag alone is not enough')
  }
  t.is((await browser.get('/reports')).headers.location, '/reports/')
  t.is((await browser.get('/reports')).headers['cache-control'], 'private, no-store')
  t.is((await browser.get('/missing')).statusCode, 404)
  for (const path of ['/', '/reports/data.json']) {
    const packed = await browser.get(path, { headers: { 'accept-encoding': 'gzip' } })
    t.is(packed.headers['content-encoding'], 'gzip')
  }

  await browser.navigate('/api/auth/logout')
  t.is((await browser.get('/reports/data.json')).statusCode, 401)
})

test('an expired session is refreshed once for many files, and the response that sets its cookie is not stored', async t => {
  const { browser, clock, idp } = await start(t)
  await signIn(browser)
  clock.advanceSeconds(3600)
  const before = idp.tokenRequests.length
  const responses = await Promise.all(Array.from({ length: 10 }, () => browser.get('/reports/data.json')))
  t.deepEqual([...new Set(statusesOf(responses))], [200])
  t.is(idp.tokenRequests.length, before + 1)
  for (const { setCookies, headers } of responses) {
    t.is(headers['cache-control'], setCookies.length > 0 ? 'no-store' : 'private, no-cache')
  }
})

test('the fallback page is protected at every URL', async t => {
  const { ask, browser } = await start(t, '/index.html', { fallback: 'index.html' })
  const html = 'Accept: text/html,*/*;q=0.8\r\n'
  for (const target of ['/models', '/a/b/c', '/models?x=1', '/welcome.htmlx', '/index.htm', '/reports/no-such-page']) {
    for (const method of ['GET', 'HEAD']) {
      const { statusCode, header, body } = await ask(target, html, method)
      t.is(statusCode, 401, target)
      t.false(body.includes(marker))
      t.is(header('etag'), undefined)
    }
    t.is((await ask(target)).statusCode, 404, target)
  }
  const document = await browser.navigate('/models/7?x=1')
  t.regex(document.text(), /return_to=%2Fmodels%2F7%3Fx%3D1"/)
  await signIn(browser)
  const served = await browser.navigate('/models/7')
  t.is(served.text(), page)
  t.is(served.headers['cache-control'], 'private, no-store')
  t.regex(String(served.headers.vary), /Cookie.*Accept\b(?!-)/)
})

test('a pattern for a folder protects what links and other URLs lead to, and leaves all other files public', async t => {
  const { ask } = await start(t, '!/reports/public.css /reports/**')
  for (const target of ['/reports', '/reports/', '/public/data.json', '/public', '/assets/link.json']) {
    t.is((await ask(target)).statusCode, 401, target)
  }
  for (const target of ['/', '/about', '/reports/public.css', '/assets/app-1a2b3c4d.js']) {
    t.is((await ask(target)).statusCode, 200, target)
  }
})

test('the files of a mounted Kubernetes ConfigMap are matched by the names that operators know', async t => {
  const folder = await tempFolder(t, {
    'www/..2026_05_01/welcome.html': 'welcome',
    'www/..2026_05_01/report.html': page
  })
  await symlink('..2026_05_01', join(folder, 'www/..data'))
  for (const name of ['welcome.html', 'report.html']) await symlink(`..data/${name}`, join(folder, 'www', name))
  for (const patterns of [['!/welcome.html', '/**'], ['/report']]) {
    const settings = { wwwroot: join(folder, 'www'), access: { files: patterns } }
    const { browser } = await startTestServer(t, { settings })
    t.is((await browser.get('/welcome')).statusCode, 200)
    for (const path of ['/report', '/report.html']) t.is((await browser.get(path)).statusCode, 401)
  }
})

test('files of a release that replaces the folder are protected from their first response', async t => {
  const folder = await tempFolder(t, { 'one/welcome.html': 'one', 'two/welcome.html': 'two', 'two/new.html': page })
  const current = join(folder, 'current')
  await symlink('one', current)
  const settings = { wwwroot: current, access: { files: ['!/welcome', '/**'] } }
  const { browser, clock } = await startTestServer(t, { settings })
  t.is((await browser.get('/new')).statusCode, 401)
  await symlink('two', `${current}.new`)
  fs.renameSync(`${current}.new`, current)
  clock.advanceSeconds(1)
  t.is((await browser.get('/new')).statusCode, 401)
  t.is((await browser.get('/welcome')).text(), 'two')
})

test('the files of the starter page are always public', async t => {
  const settings = { wwwroot: undefined, access: { files: ['/**'] } }
  const { browser } = await startTestServer(t, { settings })
  for (const path of ['/', '/starter.js', '/starter.css']) t.is((await browser.get(path)).statusCode, 200, path)
})
