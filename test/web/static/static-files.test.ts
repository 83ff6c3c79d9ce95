// The files of wwwroot as clients see them, including clients that look for a way out of the folder.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import { mkdir, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import test, { type ExecutionContext } from 'ava'
import { assertCases } from '../../helpers/case-file.js'
import { testConfig, unreachableIdp } from '../../helpers/config.js'
import { isWarning } from '../../helpers/logs.js'
import { askRaw, sendRaw } from '../../helpers/raw.js'
import { replace } from '../../helpers/replace.js'
import { signIn, startTestServer } from '../../helpers/server.js'
import { startServerProcess } from '../../helpers/server-process/index.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { words } from '../../helpers/words.js'
import { httpsCallbackUrl, sessionHeader, statusesOf, warningIn } from '../support.js'

type Files = Readonly<Record<string, string | Buffer>>

// All files that must not be served contain this string.
const marker = 'not for anyone outside'
const html = '<!doctype html><title>Page</title>'

const get = (target: string, headers = '') => `GET ${target} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`

/** Starts a server whose root is the folder `www` in a new folder. `files` are written into the new folder. */
async function startWith(t: ExecutionContext, files: Files, prepare?: (folder: string) => Promise<unknown>) {
  const folder = await tempFolder(t, { 'www/index.html': html, ...files })
  await prepare?.(folder)
  const started = await startTestServer(t, { settings: { wwwroot: join(folder, 'www') } })
  const ask = (target: string, headers?: string, method?: string) =>
    askRaw(started.server.port, target, headers, method)
  return { ...started, folder, ask }
}

// The content of each of these files is its path.
const served = words`
  index.html about.html about/index.html v1.2.html LICENSE LICENSE.html only/page.html caf\u00e9_1.html caf\u00e9_1/in/index.html
  with/index.html without/file.txt folder/file.txt sub/page.html app.js 100%25.html evil.example/index.html a/b/index.html
  .well-known/assetlinks.json ..2024_05_01/mounted.html page.html UPPER.HTML app.mjs style.css page.html.txt
  gr\u00fc\u00dfe-\u4e16\u754c.txt data.json a.tar.gz objects_attrs.json.gz module.wasm noextension file.unheard-of image.svg
  image.png font.woff2`.map(name => JSON.parse(`"${name.replace('_1', ' 1')}"`) as string)
const hidden = words`
  www/.env www/.git/config www/sub/.hidden www/.well-known/.env www/sub/.well-known/file www/.well-known2 www/sub/.folder/file
  www/folder/.hidden www/.html www/..2024_05_01/.env outside.txt outside/file.txt www-neighbour/outside.txt secret.html`
const links: Readonly<Record<string, string>> = {
  'link.txt': 'folder/file.txt',
  'linked-folder': 'folder',
  'out.txt': '../outside/file.txt',
  out: '../outside',
  neighbour: '../www-neighbour',
  up: '..',
  'twice.txt': 'out.txt',
  circle: 'circle',
  dangling: 'nothing',
  'settings.txt': '.env',
  git: '.git',
  'folder/link.txt': '../folder/.hidden',
  'twice-hidden.txt': 'settings.txt',
  'sub/link': '../.well-known/.env',
  '..data': '..2024_05_01',
  'mounted.html': '..data/mounted.html',
  'mounted-settings.txt': '..data/.env'
}
const notSent =
  /^(set-cookie|content-security-policy|cross-origin-\S+|x-frame-options|permissions-policy|referrer-policy|access-control-\S+|server|x-powered-by):/im

test('each URL leads to its file, none out of wwwroot or to a hidden file, and pages can load a viewer from another host', async t => {
  const files = Object.fromEntries([
    ...served.map(path => [`www/${path}`, path]),
    ...hidden.map(path => [path, marker])
  ]) as Files
  const { ask, logs } = await startWith(t, files, async folder => {
    for (const [name, target] of Object.entries(links)) await symlink(target, join(folder, 'www', name))
    await symlink(join(folder, 'outside/file.txt'), join(folder, 'www/absolute.txt'))
    await mkdir(join(folder, 'www/odd/index.html'), { recursive: true })
  })
  await assertCases(t, 'test/web/static/responses.txt', async request => {
    const [method = '', target = ''] = request.split(' ')
    const { statusCode, head, header, text } = await ask(target, '', method)
    t.false(`${head}${text}`.includes(marker), request)
    t.notRegex(head, notSent, request)
    t.regex(head, statusCode < 400 ? /^cache-control: no-cache\r$/im : /^cache-control: no-store\r$/im, request)
    if (statusCode === 200) return `200 ${text || '(no body)'}, ${header('content-type')}`
    return [statusCode, header('location') ?? header('allow')].filter(Boolean).join(' ')
  })
  for (const name of ['a'.repeat(300), 'a/'.repeat(4000), '%41'.repeat(5000)])
    t.is((await ask(`/${name}`)).statusCode, 404)
  t.is(warningIn(logs), undefined)
})

test('the URL of a folder below a base path leads to the public URL with a slash, also by HEAD and for a compressed index', async t => {
  const wwwroot = await tempFolder(t, { 'sub/index.html': html, 'sub/index.html.gz': gzipSync(html) })
  const settings = { wwwroot, platform: { callbackUrl: httpsCallbackUrl } }
  const { browser } = await startTestServer(t, { settings })
  for (const method of ['GET', 'HEAD']) {
    const headers = { 'accept-encoding': 'gzip' }
    const redirected = await browser.request(method, '/tools/viewer/sub?x=%2F', { headers })
    t.deepEqual([redirected.statusCode, redirected.headers.location], [302, '/tools/viewer/sub/?x=%2F'])
    t.is(redirected.headers['content-encoding'], undefined)
  }
})

test('a wwwroot below a folder whose name begins with a dot, or that is a symbolic link, is served', async t => {
  const folder = await tempFolder(t, { '.releases/www/index.html': 'the release' })
  await symlink('.releases/www', join(folder, 'current'))
  for (const name of ['.releases/www', 'current']) {
    const { browser } = await startTestServer(t, { settings: { wwwroot: join(folder, name) } })
    t.is((await browser.get('/')).text(), 'the release', name)
  }
})

test('HEAD gets the headers of GET and no body', async t => {
  const { ask, server } = await startWith(t, { 'www/page.html': html })
  const withoutDate = (head: string) => head.replace(/^(date|x-request-id): .*$/gim, '')
  t.is(withoutDate((await ask('/page.html', '', 'HEAD')).head), withoutDate((await ask('/page.html')).head))
  const head = 'HEAD /page.html HTTP/1.1\r\nHost: localhost\r\n\r\n'
  const { bytes } = await sendRaw(server.port, [head, head.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')])
  t.regex(bytes.toString(), /^HTTP\/1\.1 200 OK\r\n[^<]*\r\n\r\nHTTP\/1\.1 200 OK\r\n[^<]*\r\n\r\n$/)
})

test('a conditional request gets 304 until the content changes, whatever the time of the file is', async t => {
  const { browser, folder } = await startWith(t, { 'www/app.js': 'let a = 1' })
  const file = join(folder, 'www/app.js')
  const packedAt = new Date('1985-10-26T08:15:00Z')
  await utimes(file, packedAt, packedAt)
  const first = await browser.get('/app.js')
  const etag = String(first.headers.etag)
  t.regex(etag, /^"[\w-]{22}"$/)
  const unchanged = [
    ...[etag, `W/${etag}`, `"other", ${etag}`, '*'].map(value => ({ 'if-none-match': value })),
    { 'if-none-match': etag, 'cache-control': 'no-cache' },
    { 'if-none-match': etag, 'if-modified-since': new Date(0).toUTCString() }
  ]
  for (const method of ['GET', 'HEAD']) {
    for (const headers of unchanged) {
      const again = await browser.request(method, '/app.js', { headers })
      t.is(again.statusCode, 304, `${method} ${JSON.stringify(headers)}`)
      t.is(again.body.length, 0)
      const { etag: sent, 'content-type': type, 'content-length': length } = again.headers
      t.deepEqual([sent, type, length], [etag, undefined, undefined])
    }
  }
  const now = new Date().toUTCString()
  const other = [
    { 'if-none-match': '"other"' },
    { 'if-none-match': '"other"', 'if-modified-since': now },
    ...[String(first.headers['last-modified']), now, 'yesterday'].map(time => ({ 'if-modified-since': time }))
  ]
  for (const headers of other)
    t.is((await browser.get('/app.js', { headers })).text(), 'let a = 1', JSON.stringify(headers))

  await writeFile(file, 'let a = 2')
  await utimes(file, packedAt, packedAt)
  const changed = await browser.get('/app.js', { headers: { 'if-none-match': etag } })
  t.deepEqual([changed.statusCode, changed.text()], [200, 'let a = 2'])
  await utimes(file, new Date(), new Date())
  const touched = await browser.get('/app.js', { headers: { 'if-none-match': String(changed.headers.etag) } })
  t.is(touched.statusCode, 304)
})

test('a large file has an ETag of its content too, also just after a change', async t => {
  const content = randomBytes(100_000)
  const { browser, folder } = await startWith(t, { 'www/a.bin': content, 'www/b.bin': content })
  const file = join(folder, 'www/a.bin')
  const etagOf = async (path: string) => (await browser.request('HEAD', path)).headers.etag
  const etag = String(await etagOf('/a.bin'))
  t.regex(etag, /^"[\w-]{22}"$/)
  t.deepEqual(await Promise.all(['/a.bin', '/b.bin', '/a.bin'].map(etagOf)), [etag, etag, etag])
  for (const method of ['GET', 'HEAD']) {
    t.is((await browser.request(method, '/a.bin', { headers: { 'if-none-match': etag } })).statusCode, 304)
  }
  const { size, mtime } = await stat(file)
  await writeFile(file, randomBytes(size))
  await utimes(file, mtime, mtime)
  t.not(await etagOf('/a.bin'), etag)
})

test('responses without a body and aborted responses close their files', async t => {
  const wwwroot = await tempFolder(t, { 'large.bin': Buffer.alloc(3_000_000), 'page.html': html })
  const config = testConfig(unreachableIdp, { wwwroot, log: { level: 'warn', requests: false } })
  const { port, lines, errorOutput } = await startServerProcess(t, config, { freeFiles: 60 })
  const requests = [
    'HEAD /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n',
    get('/large.bin', 'If-None-Match: *\r\n'),
    'HEAD /page.html HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: *\r\n\r\n'
  ]
  for (let round = 0; round < 20; round += 1) {
    const pieces = Array.from({ length: 12 }, (_, index) => requests[index % 3] ?? '')
    const { answers } = await sendRaw(port, pieces, { answers: 12, head: true })
    t.is(answers.length, 12)
  }
  for (let round = 0; round < 150; round += 1) {
    const broken = await sendRaw(port, get('/large.bin'), { bytes: 1 })
    t.regex(broken.bytes.toString('latin1'), /^HTTP\/1\.1 200/)
  }
  const whole = await sendRaw(port, get('/page.html'), { answers: 1 })
  t.is(whole.answers[0]?.body.toString(), html)
  t.deepEqual(lines, [])
  t.is(errorOutput(), '')
})

/** Opening the file with this path fails with this error. File permissions are of no use here, because root may read all files. */
function refuseToOpen(t: ExecutionContext, file: string, code: string) {
  replace(t, fs, 'open', open => (...parameters: unknown[]) => {
    if (parameters[0] !== file) return Reflect.apply(open, fs, parameters)
    const callback = parameters.at(-1) as (error: unknown) => void
    return setImmediate(callback, Object.assign(new Error(code), { code }))
  })
}

/** Calls `before` just before each read of a file of this process, with the number of reads so far. */
function whenRead(t: ExecutionContext, before: (reads: number) => unknown) {
  let reads = 0
  replace(t, fs, 'read', read => (...parameters: unknown[]) => {
    before(reads++)
    Reflect.apply(read, fs, parameters)
  })
}

for (const code of ['EACCES', 'EMFILE']) {
  test.serial(
    `a file that cannot be opened because of ${code} is 500, and the connection can be used again`,
    async t => {
      const { server, folder, logs } = await startWith(t, {
        'www/file.js': 'plain',
        'www/file.js.gz': gzipSync('plain')
      })
      const gzip = 'Accept-Encoding: gzip\r\n'
      refuseToOpen(t, join(folder, 'www/file.js.gz'), code)
      const { answers } = await sendRaw(server.port, [get('/file.js', gzip), get('/index.html', gzip)], { answers: 2 })
      t.deepEqual(statusesOf(answers), [500, 200])
      const [{ head, body } = { head: '', body: '' }] = answers
      t.is(JSON.parse(body.toString()).error, 'server_error')
      t.notRegex(head, /^(content-encoding|etag|last-modified):/im)
      t.regex(head, /^cache-control: no-store$/im)
      const [fault, ...more] = logs.entries.filter(isWarning)
      t.like(fault, { event: 'request_failed', err: { code } })
      t.deepEqual(more, [])
    }
  )
}

for (const size of [5, 70_000, 1_000_000]) {
  test.serial(`a file of ${size} bytes that grows while it is sent does not break the next response`, async t => {
    const content = randomBytes(size)
    const { server, folder } = await startWith(t, { 'www/file.bin': content })
    whenRead(t, () => fs.appendFileSync(join(folder, 'www/file.bin'), Buffer.alloc(100_000, 'B')))
    const { answers } = await sendRaw(server.port, [get('/file.bin'), get('/index.html')], { answers: 2 })
    const [file, next] = answers
    t.true(file?.body.equals(content))
    t.is(next?.statusCode, 200)
    t.is(next?.body.toString(), html)
  })
}

test.serial('a large file that becomes shorter while it is sent closes the connection', async t => {
  const { server, folder, logs } = await startWith(t, { 'www/file.bin': randomBytes(1_000_000) })
  whenRead(t, reads => reads === 1 && fs.truncateSync(join(folder, 'www/file.bin'), 100_000))
  const { bytes, closedByServer } = await sendRaw(server.port, get('/file.bin'))
  t.true(closedByServer, 'the client does not wait for the rest')
  t.regex(bytes.toString('latin1'), /^content-length: 1000000\r$/im)
  t.true(bytes.length < 200_000)
  t.regex(JSON.stringify(logs.first('response_broken')), /became shorter/)
})

test.serial('a small file that becomes shorter while it is read is 500, and the connection stays usable', async t => {
  const { server, folder } = await startWith(t, { 'www/file.txt': 'the first content' })
  whenRead(t, reads => reads === 0 && fs.truncateSync(join(folder, 'www/file.txt'), 3))
  const { answers } = await sendRaw(server.port, [get('/file.txt'), get('/index.html')], { answers: 2 })
  t.deepEqual(statusesOf(answers), [500, 200])
  t.notRegex(answers[0]?.head ?? '', /^(etag|last-modified):/im)
})

test('a compressed variant of a file is sent to clients that accept its encoding, with Vary: Accept-Encoding', async t => {
  const { ask } = await startWith(t, {
    'www/app.js': 'plain',
    'www/app.js.br': brotliCompressSync('by brotli'),
    'www/app.js.gz': gzipSync('by gzip'),
    'www/style.css': 'plain',
    'www/style.css.gz': gzipSync('by gzip')
  })
  const readers: Readonly<Record<string, (body: Buffer) => Buffer>> = { br: brotliDecompressSync, gzip: gunzipSync }
  await assertCases(t, 'test/web/static/variants.txt', async (accepted, [target = '']) => {
    const headers = accepted === 'no header' ? '' : `Accept-Encoding: ${accepted}\r\n`
    const { statusCode, header, body } = await ask(target, headers)
    const again = await ask(target, `${headers}If-None-Match: ${header('etag')}\r\n`)
    t.deepEqual([again.statusCode, again.header('vary')], [304, 'Accept-Encoding'])
    t.is(header('vary'), 'Accept-Encoding')
    const encoding = header('content-encoding')
    const text = (readers[encoding ?? ''] ?? (plain => plain))(body).toString()
    return [statusCode, encoding, text, header('content-type')].filter(Boolean).join(', ')
  })
})

test('a compressed variant that cannot be sent is ignored', async t => {
  const { ask } = await startWith(t, { 'outside.br': marker, 'www/page.html': html }, async folder => {
    await symlink('../outside.br', join(folder, 'www/page.html.br'))
    await mkdir(join(folder, 'www/folder.gz'))
  })
  const page = await ask('/page.html', 'Accept-Encoding: br\r\n')
  t.deepEqual([page.statusCode, page.header('content-encoding'), page.text], [200, undefined, html])
  const folder = await ask('/folder', 'Accept-Encoding: gzip\r\n')
  t.deepEqual([folder.statusCode, folder.header('content-encoding')], [404, undefined])
})

test('a single range of a file is sent with 206, for small and large files and compressed variants', async t => {
  const digits = '0123456789'.repeat(10_000)
  const { ask, clock } = await startWith(t, {
    'www/small.txt': digits.slice(0, 10),
    'www/small.txt.gz': digits.slice(0, 10),
    'www/large.bin': digits,
    'www/empty.bin': ''
  })
  clock.advanceSeconds(3)
  await assertCases(t, 'test/web/static/ranges.txt', async (range, [target = '', encoding]) => {
    const headers = `Accept-Encoding: ${encoding}\r\n`
    const whole = await ask(target, headers)
    t.is(whole.header('accept-ranges'), 'bytes')
    const { statusCode, header, body } = await ask(target, `${headers}Range: ${range}\r\n`)
    const sent = header('content-range') ?? `${body.length} bytes`
    if (statusCode !== 206) return `${statusCode} ${sent}`
    const etag = whole.header('etag')
    const [start, end] = (sent.match(/\d+/g) ?? []).map(Number) as [number, number]
    t.is(body.toString(), digits.slice(start, end + 1))
    for (const name of ['etag', 'content-type', 'vary']) t.is(header(name), whole.header(name))
    for (const [condition, status] of [
      [`If-Range: ${etag}`, 206],
      ...['"other"', `W/${etag}`, new Date().toUTCString()].map(outdated => [`If-Range: ${outdated}`, 200] as const),
      [`If-None-Match: ${etag}`, 304]
    ] as const)
      t.is((await ask(target, `${headers}Range: ${range}\r\n${condition}\r\n`)).statusCode, status, `${condition}`)
    t.is((await ask(target, `${headers}Range: ${range}\r\n`, 'HEAD')).statusCode, 200)
    return `${statusCode} ${sent}`
  })
})

test('if wwwroot is a symlink that is replaced, the new folder is served within a second, unless it cannot be served', async t => {
  const folder = await tempFolder(t, {
    'one/index.html': 'one',
    'one/app.js': 'one',
    'two/index.html': 'two',
    'two/api/auth/page.html': 'two',
    'no-index/app.js': 'no index',
    'with-secret/index.html': 'with secret',
    'with-secret/secret.txt': marker,
    'file.txt': marker
  })
  const current = join(folder, 'current')
  const leadTo = async (target: string) => {
    await symlink(target, `${current}.new`)
    fs.renameSync(`${current}.new`, current)
  }
  await leadTo('one')
  const secret = { key: 'session.secret', source: 'a test', path: join(folder, 'with-secret/secret.txt') }
  const settings = { wwwroot: current, fallback: 'index.html' }
  const { browser, clock, config, logs } = await startTestServer(t, { settings })
  Object.assign(config, { privateFiles: [secret] })
  const served = async () => {
    clock.advanceSeconds(1)
    return (await browser.get('/')).text()
  }
  t.is(await served(), 'one')
  await leadTo('two')
  t.is((await browser.get('/')).text(), 'one', 'the symlink is read once a second')
  t.is(await served(), 'two')
  t.is((await browser.get('/app.js')).statusCode, 404)
  t.is((await browser.get('/api/auth/page.html')).text(), 'two')
  t.is(logs.first('wwwroot_replaced')?.folder, join(fs.realpathSync(folder), 'two'))
  for (const [target, reason] of [
    ['file.txt', /it is a file/],
    ['missing', /no such folder/],
    ['no-index', /no file index\.html \(setting fallback\)/],
    ['with-secret', /session\.secret must not be public/]
  ] as const) {
    await leadTo(target)
    t.is(await served(), 'two', target)
    t.is(await served(), 'two', target)
    t.is((await browser.get('/secret.txt')).statusCode, 404)
    const rejections = logs
      .all('wwwroot_rejected')
      .filter(({ folder }) => String(folder).endsWith(target) || target === 'missing')
    t.regex(String(rejections.at(-1)?.msg), reason)
  }
  t.is(logs.all('wwwroot_rejected').length, 4, 'one warning for each folder')
  await leadTo('one')
  t.is(await served(), 'one')
})

test('a static file neither reads nor sets a session cookie', async t => {
  const { browser, clock, idp, logs } = await startWith(t, { 'www/page.html': html })
  await signIn(browser)
  const before = { requests: idp.requests.length, logs: logs.entries.length }
  clock.advanceSeconds(3600)
  const valid = sessionHeader(browser)
  const paths = ['/', '/page.html', '/nothing-here', '/healthz', '/readyz', '/api/other', '/api/authx/profile']
  for (const cookie of [valid, 'platform_session=1garbage', `${valid.slice(0, -4)}AAAA`]) {
    for (const path of paths) {
      const { setCookies, headers } = await browser.get(path, { headers: { cookie } })
      t.deepEqual(setCookies, [], path)
      t.notRegex(String(headers.vary ?? ''), /cookie/i)
    }
  }
  t.is(idp.requests.length, before.requests)
  t.deepEqual([...new Set(logs.entries.slice(before.logs).map(({ event }) => event))].sort(), [
    'request',
    'request_rejected'
  ])
})
