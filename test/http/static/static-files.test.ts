// The files of wwwroot as clients see them, including clients that look for a way out of the folder.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import { mkdir, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import test, { type ExecutionContext } from 'ava'
import { testConfig, unreachableIdp } from '../../helpers/config.js'
import { sendRaw } from '../../helpers/raw.js'
import { signIn, startTestServer } from '../../helpers/server.js'
import { startServerProcess } from '../../helpers/server-process/index.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { sessionHeader, statusesOf, warningIn } from '../support.js'

type Files = Readonly<Record<string, string | Buffer>>

// All files that must not be served contain this string.
const marker = 'not for anyone outside'
const html = '<!doctype html><title>Page</title>'

const get = (target: string, headers = '') => `GET ${target} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`

/** Starts a server whose root is the folder `www` in a new folder. `files` are written into the new folder. */
async function startWith(
  t: ExecutionContext,
  files: Files,
  prepare: (folder: string) => Promise<unknown> = async () => {}
) {
  const folder = await tempFolder(t, { 'www/index.html': html, ...files })
  await prepare(folder)
  const started = await startTestServer(t, { overrides: { wwwroot: join(folder, 'www') } })
  /** Sends one request byte for byte on a new connection. */
  const ask = async (target: string, headers = '', method = 'GET') => {
    const request = `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${headers}Connection: close\r\n\r\n`
    const { answers, bytes } = await sendRaw(started.server.port, request, { head: method === 'HEAD' })
    const [answer] = answers
    if (!answer) throw new Error(`No response to ${method} ${target}: ${bytes}`)
    return { ...answer, text: answer.body.toString() }
  }
  return { ...started, folder, ask }
}

test('no spelling of a path leads out of wwwroot', async t => {
  const files = { 'outside.txt': marker, 'www-neighbour/outside.txt': marker, 'www/sub/page.html': html }
  const { ask, folder, logs } = await startWith(t, files)
  const absolute = join(folder, 'outside.txt')
  const targets = [
    '/../outside.txt',
    '/../www-neighbour/outside.txt',
    '/sub/../../outside.txt',
    '/./../outside.txt',
    '/%2e%2e/outside.txt',
    '/%2E%2E/outside.txt',
    '/.%2e/outside.txt',
    '/..%2foutside.txt',
    '/..%2Foutside.txt',
    '/%2e%2e%2foutside.txt',
    '/sub/..%2f..%2foutside.txt',
    '/sub%2f..%2f..%2foutside.txt',
    '/..%5coutside.txt',
    '/%2e%2e%5coutside.txt',
    '/..\\outside.txt',
    '/\\..\\outside.txt',
    '/sub/..\\..\\outside.txt',
    '/%252e%252e%252foutside.txt',
    '/..%252foutside.txt',
    '/%c0%ae%c0%ae/outside.txt',
    '/..%c0%afoutside.txt',
    '/\xc0\xae\xc0\xae/outside.txt',
    '/%u002e%u002e/outside.txt',
    '/..;/outside.txt',
    '/..%00/outside.txt',
    '/%00/../outside.txt',
    '/....//outside.txt',
    `/${absolute}`,
    `//${absolute}`,
    `/${encodeURIComponent(absolute)}`,
    `/file:${absolute}`,
    '/C:/outside.txt',
    '/C%3a%5coutside.txt',
    'http://localhost/../outside.txt',
    'http://localhost/%2e%2e/outside.txt',
    `http://localhost/${absolute}`
  ]
  for (const target of targets) {
    const { statusCode, head, text } = await ask(target)
    t.true(statusCode === 400 || statusCode === 404, `${target}: ${statusCode}`)
    t.false(head.includes(marker) || text.includes(marker), target)
  }
  t.is(warningIn(logs), undefined)
})

test('files and folders whose name begins with a dot are 404', async t => {
  const names = ['.env', '.git/config', 'sub/.hidden', '.well-known/file', 'sub/.folder/file']
  const { ask } = await startWith(t, Object.fromEntries(names.map(name => [`www/${name}`, marker])))
  const targets = [...names.map(name => `/${name}`), '/%2eenv', '/%2Egit/config', '/sub/%2ehidden', '/sub/../.env']
  for (const target of targets) {
    const { statusCode, text } = await ask(target)
    t.is(statusCode, 404, target)
    t.false(text.includes(marker), target)
  }
})

test('a folder is served as its index.html or is 404, and never as a list of files', async t => {
  const files = { 'www/with/index.html': 'the index', 'www/without/file.txt': marker }
  const { ask } = await startWith(t, files, folder => mkdir(join(folder, 'www/odd/index.html'), { recursive: true }))
  t.is((await ask('/with/')).text, 'the index')
  t.is((await ask('/with')).text, 'the index')
  for (const target of ['/without', '/without/', '/odd', '/odd/', '/with/index.html/']) {
    const { statusCode, text } = await ask(target)
    t.is(statusCode, 404, target)
    t.false(text.includes('file.txt'), target)
  }
})

test('a symbolic link is followed only if it leads to a file inside wwwroot whose path has no name that begins with a dot', async t => {
  const outside = { 'outside/file.txt': marker, 'www-neighbour/file.txt': marker }
  const hidden = { 'www/.env': marker, 'www/.git/config': marker, 'www/folder/.hidden': marker }
  const files = { ...outside, ...hidden, 'www/folder/file.txt': 'inside' }
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
    'twice-hidden.txt': 'settings.txt'
  }
  const { ask, folder, logs } = await startWith(t, files, async folder => {
    for (const [name, target] of Object.entries(links)) await symlink(target, join(folder, 'www', name))
    await symlink(join(folder, 'outside/file.txt'), join(folder, 'www/absolute.txt'))
  })
  await symlink('../outside/file.txt', join(folder, 'www/late.txt'))
  for (const target of ['/link.txt', '/linked-folder/file.txt']) t.is((await ask(target)).text, 'inside')
  const refused = [
    ...[
      '/out.txt',
      '/absolute.txt',
      '/out/file.txt',
      '/neighbour/file.txt',
      '/up/outside/file.txt',
      '/twice.txt',
      '/late.txt'
    ],
    ...['/circle', '/circle/file', '/dangling', '/dangling/file'],
    ...['/settings.txt', '/git/config', '/folder/link.txt', '/twice-hidden.txt']
  ]
  for (const target of refused) {
    for (const method of ['GET', 'HEAD']) {
      const { statusCode, head, text } = await ask(target, '', method)
      t.is(statusCode, 404, `${method} ${target}`)
      t.false(text.includes(marker), target)
      t.notRegex(head, /^(etag|last-modified):/im, target)
    }
  }
  t.is(warningIn(logs), undefined)
})

test('the files of a mounted Kubernetes ConfigMap are served, although they are links into a folder whose name begins with a dot', async t => {
  const files = { 'www/..2024_05_01/page.html': html, 'www/..2024_05_01/.env': marker }
  const { ask } = await startWith(t, files, async folder => {
    const www = join(folder, 'www')
    await symlink('..2024_05_01', join(www, '..data'))
    await symlink('..data/page.html', join(www, 'page.html'))
    await symlink('..data/.env', join(www, 'settings.txt'))
  })
  t.is((await ask('/page.html')).text, html)
  for (const target of ['/..data/page.html', '/settings.txt']) t.is((await ask(target)).statusCode, 404, target)
})

test('a wwwroot below a folder whose name begins with a dot, or that is a symbolic link, is served', async t => {
  const folder = await tempFolder(t, { '.releases/www/index.html': 'the release' })
  await symlink('.releases/www', join(folder, 'current'))
  for (const name of ['.releases/www', 'current']) {
    const { browser } = await startTestServer(t, { overrides: { wwwroot: join(folder, name) } })
    t.is((await browser.get('/')).text(), 'the release', name)
  }
})

test('impossible file names get 400 or 404 and are not logged as errors', async t => {
  const { ask, logs } = await startWith(t, {})
  const cases: readonly (readonly [target: string, status: number])[] = [
    ['/%00', 400],
    ['/index.html%00', 400],
    ['/index.html%00.png', 400],
    ['/%', 400],
    ['/%zz', 400],
    ['/%ff', 400],
    ['/%c0%ae', 400],
    ['/%e2%28%a1', 400],
    ['/%ed%a0%80', 400],
    [`/${'a'.repeat(300)}`, 404],
    [`/${'a/'.repeat(4000)}`, 404],
    [`/${'%41'.repeat(5000)}`, 404],
    ['/%0d%0aSet-Cookie:%20a=b', 404],
    ['/a\x80\xff', 400],
    ['/a%20b%09c%0bd', 404]
  ]
  for (const [target, status] of cases) {
    const { statusCode, head } = await ask(target)
    t.is(statusCode, status, target.slice(0, 40))
    t.notRegex(head, /^set-cookie:/im)
  }
  t.is(warningIn(logs), undefined)
})

test('HEAD gets the headers of GET and no body', async t => {
  const { ask, server } = await startWith(t, { 'www/page.html': html })
  const withoutDate = (head: string) => head.replace(/^(date|x-request-id): .*$/gim, '')
  t.is(withoutDate((await ask('/page.html', '', 'HEAD')).head), withoutDate((await ask('/page.html')).head))
  const head = 'HEAD /page.html HTTP/1.1\r\nHost: localhost\r\n\r\n'
  const { bytes } = await sendRaw(server.port, [head, head.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')])
  t.regex(bytes.toString(), /^HTTP\/1\.1 200 OK\r\n[^<]*\r\n\r\nHTTP\/1\.1 200 OK\r\n[^<]*\r\n\r\n$/)
})

test('a conditional request gets 304 until the file changes', async t => {
  const { browser, folder } = await startWith(t, { 'www/app.js': 'let a = 1' })
  const first = await browser.get('/app.js')
  const etag = String(first.headers.etag)
  const modified = String(first.headers['last-modified'])
  const later = new Date(Date.parse(modified) + 86_400_000).toUTCString()
  const unchanged: readonly Record<string, string>[] = [
    { 'if-none-match': etag },
    { 'if-none-match': etag.replace('W/', '') },
    { 'if-none-match': `"other", ${etag}` },
    { 'if-none-match': '*' },
    { 'if-modified-since': modified },
    { 'if-modified-since': later }
  ]
  for (const method of ['GET', 'HEAD']) {
    for (const headers of unchanged) {
      const again = await browser.request(method, '/app.js', { headers })
      t.is(again.statusCode, 304, `${method} ${JSON.stringify(headers)}`)
      t.is(again.body.length, 0)
      t.is(again.headers.etag, etag)
      t.is(again.headers['content-type'], undefined)
      t.is(again.headers['content-length'], undefined)
    }
  }
  const other: readonly Record<string, string>[] = [
    { 'if-none-match': '"other"' },
    { 'if-none-match': '"other"', 'if-modified-since': later },
    { 'if-modified-since': new Date(Date.parse(modified) - 1000).toUTCString() },
    { 'if-modified-since': 'yesterday' },
    { 'if-none-match': etag, 'cache-control': 'no-cache' }
  ]
  for (const headers of other)
    t.is((await browser.get('/app.js', { headers })).text(), 'let a = 1', JSON.stringify(headers))

  await writeFile(join(folder, 'www/app.js'), 'let a = 2')
  await utimes(join(folder, 'www/app.js'), new Date(), new Date(Date.now() + 5000))
  const changed = await browser.get('/app.js', { headers: { 'if-none-match': etag } })
  t.is(changed.statusCode, 200)
  t.is(changed.text(), 'let a = 2')
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

/**
 * Calls `before` just before a file of this process is opened, and `after` just after that. Both get the path. `before` may
 * throw the error with which opening the file fails.
 */
function whenOpened(t: ExecutionContext, before: (path: string) => void, after: (path: string) => void = () => {}) {
  const { open } = fs
  const replacement = (...parameters: readonly unknown[]) => {
    const path = String(parameters[0])
    const callback = parameters.at(-1) as (error: unknown, fd?: number) => void
    try {
      before(path)
    } catch (error) {
      setImmediate(callback, error)
      return
    }
    const opened = (error: unknown, fd?: number) => {
      after(path)
      callback(error, fd)
    }
    Reflect.apply(open, fs, [...parameters.slice(0, -1), opened])
  }
  fs.open = replacement as typeof fs.open
  t.teardown(() => {
    fs.open = open
  })
}

/** Calls `before` just before each read of a file of this process, with the number of reads so far. */
function whenRead(t: ExecutionContext, before: (reads: number) => void) {
  const { read } = fs
  let reads = 0
  const replacement = (...parameters: readonly unknown[]) => {
    before(reads)
    reads += 1
    Reflect.apply(read, fs, parameters)
  }
  fs.read = replacement as typeof fs.read
  t.teardown(() => {
    fs.read = read
  })
}

const unopened: readonly (readonly [what: string, code: string, status: number, error: string])[] = [
  ['was deleted after its status was read', 'ENOENT', 404, 'not_found'],
  ['the server has no right to read', 'EACCES', 500, 'server_error'],
  ['cannot be opened because too many files are open', 'EMFILE', 500, 'server_error']
]

for (const [what, code, status, error] of unopened) {
  test.serial(`a file that ${what} is ${status}, and the connection can be used again`, async t => {
    const { server, folder, logs } = await startWith(t, { 'www/file.js': 'plain', 'www/file.js.gz': gzipSync('plain') })
    const gzip = 'Accept-Encoding: gzip\r\n'
    // File permissions are of no use here, because root may read all files.
    whenOpened(t, opened => {
      if (opened === join(folder, 'www/file.js.gz'))
        throw Object.assign(new Error(`${code}: open '${opened}'`), { code })
    })
    const { answers } = await sendRaw(server.port, [get('/file.js', gzip), get('/index.html', gzip)], { answers: 2 })
    t.deepEqual(statusesOf(answers), [status, 200])
    const [{ head, body } = { head: '', body: '' }] = answers
    t.is(JSON.parse(body.toString()).error, error)
    t.notRegex(head, /^(content-encoding|etag|last-modified):/im)
    t.regex(head, /^cache-control: no-store$/im)
    const faults = logs.entries.filter(({ level }) => Number(level) >= 40)
    t.deepEqual(
      faults.map(({ event, err }) => [event, (err as { code?: string }).code]),
      status === 404 ? [] : [['request_failed', code]]
    )
  })
}

test('empty, small and large files are sent completely', async t => {
  const sizes = [0, 1, 65_536, 65_537, 1_000_000]
  const files = sizes.map(size => [`www/${size}.bin`, randomBytes(size)] as const)
  const { ask } = await startWith(t, Object.fromEntries(files))
  for (const [index, size] of sizes.entries()) {
    const { statusCode, head, body } = await ask(`/${size}.bin`)
    t.is(statusCode, 200)
    t.regex(head, new RegExp(`^content-length: ${size}$`, 'im'))
    t.true(body.equals(files[index]?.[1] ?? Buffer.alloc(0)), `${size} bytes`)
  }
})

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
  whenRead(t, reads => {
    if (reads === 1) fs.truncateSync(join(folder, 'www/file.bin'), 100_000)
  })
  const { bytes, closedByServer } = await sendRaw(server.port, get('/file.bin'))
  t.true(closedByServer, 'the client does not wait for the rest')
  t.regex(bytes.toString('latin1'), /^content-length: 1000000\r$/im)
  t.true(bytes.length < 200_000)
  const broken = logs.first('response_broken')
  t.regex(String((broken?.err as Error | undefined)?.message), /became shorter/)
})

test.serial('a small file that becomes shorter while it is read is 500, and the connection stays usable', async t => {
  const { server, folder } = await startWith(t, { 'www/file.txt': 'the first content' })
  whenRead(t, reads => {
    if (reads === 0) fs.truncateSync(join(folder, 'www/file.txt'), 3)
  })
  const { answers } = await sendRaw(server.port, [get('/file.txt'), get('/index.html')], { answers: 2 })
  t.deepEqual(statusesOf(answers), [500, 200])
  t.notRegex(answers[0]?.head ?? '', /^(etag|last-modified):/im)
})

// Each swap replaces a file or folder in wwwroot by a link that leads out, or brings it back.
const swaps: readonly (readonly [what: string, name: string, target: string])[] = [
  ['a file', 'sub/file.txt', '../../outside/file.txt'],
  ['a folder', 'sub', '../outside']
]

for (const [what, name, target] of swaps) {
  for (const isSwappedBack of [false, true]) {
    const end = isSwappedBack ? ' and back after that' : ''
    test.serial(`${what} that is swapped for a link just before the file is opened${end} leaks nothing`, async t => {
      const files = { 'www/sub/file.txt': 'harmless', 'outside/file.txt': marker }
      const { ask, folder, logs } = await startWith(t, files)
      const place = join(folder, 'www', name)
      const kept = join(folder, 'kept')
      const isFile = (path: string) => path === join(folder, 'www/sub/file.txt')
      const swap = (path: string) => {
        if (!isFile(path)) return
        fs.renameSync(place, kept)
        fs.symlinkSync(target, place)
      }
      const swapBack = (path: string) => {
        if (!isFile(path)) return
        fs.unlinkSync(place)
        fs.renameSync(kept, place)
      }
      whenOpened(t, swap, isSwappedBack ? swapBack : undefined)
      const { statusCode, head, text } = await ask('/sub/file.txt')
      t.false(text.includes(marker))
      t.is(statusCode, 404)
      t.notRegex(head, /^(etag|last-modified):/im)
      t.is(warningIn(logs), undefined)
    })
  }
}

test('encoded dot segments are 404, because caches would take the file for that of another URL', async t => {
  const { ask } = await startWith(t, { 'www/sub/page.html': html, 'www/app.js': 'let a', 'www/100%25.html': html })
  const hidden = [
    '/sub/%2e%2e/app.js',
    '/sub/%2E%2E/app.js',
    '/sub/.%2e/app.js',
    '/sub/%2e./app.js',
    '/sub/..%2fapp.js',
    '/sub/..%2Fapp.js',
    '/sub%2f../app.js',
    '/sub%2f..%2fapp.js',
    '/sub/..%5capp.js',
    '/%2e/app.js',
    '/sub/../%2e/app.js',
    '/sub/%2e%2e/sub/page.html',
    '/sub/%2e%2e',
    '/sub/%2e%2e/'
  ]
  for (const target of hidden) t.is((await ask(target)).statusCode, 404, target)
  for (const target of ['/sub/../app.js', '/./app.js', '/sub%2fpage.html', '/%61pp.js', '/100%2525.html']) {
    t.is((await ask(target)).statusCode, 200, target)
  }
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
  const cases: readonly (readonly [target: string, accepted: string, encoding: string | undefined, text: string])[] = [
    ['/app.js', 'gzip, deflate, br', 'br', 'by brotli'],
    ['/app.js', 'gzip', 'gzip', 'by gzip'],
    ['/app.js', 'br;q=0, gzip', 'gzip', 'by gzip'],
    ['/app.js', 'identity', undefined, 'plain'],
    ['/app.js', 'br;q=0, gzip;q=0', undefined, 'plain'],
    ['/style.css', 'gzip, br', 'gzip', 'by gzip'],
    ['/style.css', 'br', undefined, 'plain']
  ]
  const types: Readonly<Record<string, RegExp>> = {
    '/app.js': /^content-type: text\/javascript/im,
    '/style.css': /^content-type: text\/css/im
  }
  for (const [target, accepted, encoding, text] of cases) {
    const { statusCode, head, body } = await ask(target, `Accept-Encoding: ${accepted}\r\n`)
    t.is(statusCode, 200)
    t.is(/^content-encoding: (.+)$/im.exec(head)?.[1], encoding, `${target} ${accepted}`)
    t.is((readers[encoding ?? ''] ?? (plain => plain))(body).toString(), text)
    t.regex(head, /^vary: accept-encoding$/im)
    t.regex(head, types[target] ?? /^$/)
    const etag = /^etag: (.+)$/im.exec(head)?.[1]
    const again = await ask(target, `Accept-Encoding: ${accepted}\r\nIf-None-Match: ${etag}\r\n`)
    t.is(again.statusCode, 304)
    t.regex(again.head, /^vary: accept-encoding$/im)
  }
  const { head } = await ask('/app.js')
  t.regex(head, /^vary: accept-encoding$/im)
  t.notRegex(head, /^content-encoding:/im)
})

test('a compressed variant that cannot be sent is 404 without Content-Encoding', async t => {
  const { ask } = await startWith(t, { 'outside.br': marker, 'www/page.html': html }, async folder => {
    await symlink('../outside.br', join(folder, 'www/page.html.br'))
    await mkdir(join(folder, 'www/folder.gz'))
  })
  for (const [target, accepted] of [
    ['/page.html', 'br'],
    ['/folder', 'gzip']
  ]) {
    const { statusCode, head, text } = await ask(target ?? '', `Accept-Encoding: ${accepted}\r\n`)
    t.is(statusCode, 404)
    t.notRegex(head, /^content-encoding:/im)
    t.is(JSON.parse(text).error, 'not_found')
  }
})

test('range requests are not supported and get the whole file', async t => {
  const { ask } = await startWith(t, { 'www/file.txt': '0123456789' })
  const ranges = ['bytes=0-1', 'bytes=-1', 'bytes=5-', 'bytes=100-200', 'bytes=0-0,2-2', 'lines=1-2', 'nonsense']
  for (const range of ranges) {
    const { statusCode, head, text } = await ask('/file.txt', `Range: ${range}\r\n`)
    t.is(statusCode, 200, range)
    t.is(text, '0123456789')
    t.notRegex(head, /^(accept-ranges: bytes|content-range:)/im)
  }
})

test('the content type of a file depends on its extension', async t => {
  const types: Readonly<Record<string, string>> = {
    'page.html': 'text/html; charset=utf-8',
    'app.js': 'text/javascript; charset=utf-8',
    'app.mjs': 'text/javascript; charset=utf-8',
    'style.css': 'text/css; charset=utf-8',
    'data.json': 'application/json; charset=utf-8',
    'image.svg': 'image/svg+xml',
    'image.png': 'image/png',
    'module.wasm': 'application/wasm',
    'font.woff2': 'font/woff2',
    'UPPER.HTML': 'text/html; charset=utf-8',
    'page.html.txt': 'text/plain; charset=utf-8',
    noextension: 'application/octet-stream',
    'file.unheard-of': 'application/octet-stream',
    'gr\u00fc\u00dfe \u4e16\u754c.txt': 'text/plain; charset=utf-8'
  }
  const files = Object.fromEntries(Object.keys(types).map(name => [`www/${name}`, 'content']))
  const { browser } = await startWith(t, files)
  for (const [name, type] of Object.entries(types)) {
    const { statusCode, headers, text } = await browser.get(`/${encodeURIComponent(name)}`)
    t.is(statusCode, 200, name)
    t.is(headers['content-type'], type, name)
    t.is(headers['content-length'], '7')
    t.is(headers['x-content-type-options'], 'nosniff')
    t.is(text(), 'content')
  }
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
  t.deepEqual([...new Set(logs.entries.slice(before.logs).map(({ event }) => event))], ['request'])
})

test('pages in wwwroot get no security policy headers, so that they can load a viewer from another host', async t => {
  const { ask } = await startWith(t, { 'www/page.html': html, 'www/app.js': 'let a' })
  for (const target of ['/', '/page.html', '/app.js']) {
    const { head } = await ask(target)
    t.notRegex(
      head,
      /^(content-security-policy|cross-origin-\S+|x-frame-options|permissions-policy|referrer-policy):/im
    )
    t.notRegex(head, /^(access-control-\S+|server|x-powered-by):/im)
  }
})

test('all methods except GET and HEAD get 405 with the allowed methods, whether the file exists or not', async t => {
  const { ask } = await startWith(t, { 'www/page.html': html })
  const methods = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE', 'SEARCH']
  for (const method of methods) {
    for (const target of ['/', '/page.html', '/nothing', '/healthz', '/readyz']) {
      const { statusCode, head, text } = await ask(target, 'X-Echo: hello\r\n', method)
      t.is(statusCode, 405, `${method} ${target}`)
      t.regex(head, /^allow: GET, HEAD$/im)
      t.is(JSON.parse(text).error, 'method_not_allowed')
      t.false(`${head}${text}`.includes('hello'), 'the response contains no part of the request')
    }
  }
})
