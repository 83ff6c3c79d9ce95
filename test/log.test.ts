import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import test from 'ava'
import type { Logger } from 'pino'
import { type Colours, coloursFor } from '#src/base/colours.js'
import { SessionTooLargeError } from '#src/cookie/session-cookie.js'
import { OAuthError, ProviderError, UnknownKeyError, unusableTokens } from '#src/provider/provider-error.js'
import { createLog, standardOutput } from '#src/server/log.js'
import { StoreUnavailableError } from '#src/sessions/cells.js'
import { UpstreamError } from '#src/web/proxy/upstream.js'
import { upstreamError } from '#src/web/proxy/upstream-failure.js'
import { eventually } from './helpers/eventually.js'
import { collectLogs } from './helpers/logs.js'
import { testWhere } from './helpers/requirement.js'
import { runCommand } from './helpers/run-command.js'
import { tempFolder } from './helpers/temp-folder.js'

/** Every write to this device fails as on a full disk. Only Linux has it. */
const FULL = '/dev/full'
const onFullDisk = testWhere(existsSync(FULL), `no ${FULL}`)

for (const pretty of [false, true]) {
  onFullDisk(
    `a program whose ${pretty ? 'pretty' : 'JSON'} log goes to a full disk continues and can exit`,
    async t => {
      const program = `
      const { createLog } = await import(${JSON.stringify(import.meta.resolve('#src/server/log.js'))})
      const log = createLog({ level: 'info', format: '${pretty ? 'text' : 'json'}' })
      log.info('lost')
      log.fatal('lost')
      console.error('went on')
      process.exit(3)`
      const command = [process.execPath, '--input-type=module', '-e', program]
      const { status, stderr } = await runCommand(['sh', '-c', `exec "$@" >${FULL}`, 'sh', ...command])
      t.deepEqual([status, stderr], [3, 'went on\n'])
    }
  )
}

onFullDisk('the log continues when the disk has space again', async t => {
  const file = join(await tempFolder(t), 'log')
  const fd = openSync(FULL, constants.O_WRONLY)
  const output = standardOutput(fd)
  for (let line = 1; line <= 3; line++) output.write('lost\n')
  // Replaces the descriptor by one of a file that can be written.
  closeSync(fd)
  const others: number[] = []
  for (let opened = openSync(file, 'w'); opened !== fd; opened = openSync(file, 'w')) others.push(opened)
  t.teardown(() => {
    for (const open of [fd, ...others]) closeSync(open)
  })
  output.write('kept\n')
  output.write('kept as well\n')
  // The first line begins with a line break, because the disk may hold a part of the line that was lost.
  t.is(readFileSync(file, 'utf8'), '\nkept\nkept as well\n')
})

test('a reader that stops reading the log delays the program by one second at most', async t => {
  const program = `
    const { standardOutput } = await import(${JSON.stringify(import.meta.resolve('#src/server/log.js'))})
    // The command line reads this property too. After that, a write to a full pipe fails instead of blocking.
    process.stdout.isTTY
    const output = standardOutput()
    for (let written = 0; written < 20_000; written++) output.write('x'.repeat(99) + '\\n')
    console.error('went on')
    setInterval(() => output.write('taken again\\n'), 10)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program])
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stderr, 'data')
  let read = ''
  child.stdout.setEncoding('utf8').on('data', chunk => {
    read += chunk
  })
  await eventually(() => read.endsWith('\ntaken again\n'))
  t.true(read.length < 1_900_000, 'the lines that did not fit into the pipe are lost')
})

test('the log of an unexpected error contains its message and stack but none of its other properties', async t => {
  const { log, lines, entries } = await collectLogs()
  const cause = Object.assign(new Error('refused'), {
    code: 'ECONNREFUSED',
    config: { headers: 'Bearer of-the-cause' }
  })
  const thrown = new TypeError('the platform did not respond', { cause })
  log.error({
    err: Object.assign(thrown, { code: 'E_PLATFORM', config: { headers: { Authorization: 'Bearer secret' } } })
  })
  const { err } = entries[0] as { err: Record<string, string> }
  t.deepEqual(Object.keys(err), ['type', 'message', 'code', 'stack'])
  t.is(err.type, 'TypeError')
  t.is(err.code, 'E_PLATFORM')
  t.regex(err.message ?? '', /the platform did not respond.*refused/)
  t.regex(err.stack ?? '', /log\.test\.[jt]s/)
  t.notRegex(lines.join(), /Bearer/)
})

const own: Readonly<Record<string, Error>> = {
  client_rejected: oauthError('invalid_client', 401),
  provider_refused: oauthError('invalid_grant', 400),
  provider_timeout: new ProviderError('token', 'timeout', 'no response'),
  provider_unreachable: new ProviderError('token', 'unreachable', 'no connection'),
  provider_invalid_response: new ProviderError('token', 'invalid_response', 'it responded with 500', { status: 500 }),
  provider_throttled: new ProviderError('token', 'invalid_response', 'it responded with 429', { status: 429 }),
  queue_full: new ProviderError('token', 'queue_full', 'not sent'),
  identity_mismatch: unusableTokens('another user', { reason: 'identity_mismatch' }),
  unknown_key: new UnknownKeyError(1),
  redis_unavailable: new StoreUnavailableError('redis'),
  stored_data_unreadable: new StoreUnavailableError('unreadable'),
  session_too_large: new SessionTooLargeError(
    { fields: { refresh_token: 'x', expires_at: 0 }, identity: undefined },
    9
  ),
  upstream_timeout: upstreamError('timeout', new Error('silence')),
  timeout: new UpstreamError('timeout', new Error('silence'))
}

function oauthError(error: string, status: number): OAuthError {
  return new OAuthError({ error, status, endpoint: 'token' })
}

test('the type of an error of this program is a word that does not depend on the name of its class', async t => {
  const { log, entries } = await collectLogs()
  for (const err of Object.values(own)) log.warn({ err })
  t.deepEqual(
    entries.map(({ err }) => (err as { type: string }).type),
    Object.keys(own)
  )
  t.notRegex(JSON.stringify(entries), /[A-Z]\w+Error/)
})

test('the error of a library keeps its class and its stack, even if it has a reason', async t => {
  const { log, entries } = await collectLogs()
  log.error({ err: Object.assign(new TypeError('unexpected'), { reason: 'unsupported' }) })
  t.like(entries[0], { err: { type: 'TypeError' } })
  t.regex(JSON.stringify(entries[0]), /"stack":.*log\.test/)
})

/** Returns the string that a terminal shows for the events that `write` logs. */
function shown(write: (log: Logger) => void, colours?: Colours): string {
  const lines: string[] = []
  const output = { write: (text: string) => void lines.push(text) }
  write(createLog({ level: 'trace', format: 'text' }, output, colours))
  return lines.join('').replace(/^\d\d:\d\d:\d\d\.\d{3}/gm, 'TIME')
}

const request = { event: 'request', request_id: 'x', method: 'GET', path: '/a', duration_ms: 3, client_ip: '::1' }

/** Code that does not belong to Node or to a package throws this error. */
function thrown(message: string): Error {
  const error = new TypeError(message)
  error.stack = [
    `TypeError: ${message}`,
    '    at handler (file:///app/routes.mjs:5:3)',
    '    at async dispatch (/app/node_modules/koa-compose/index.js:42:32)',
    '    at node:internal/process/task_queues:95:5'
  ].join('\n')
  return error
}

const events: readonly (readonly [name: string, write: (log: Logger) => void, text: string])[] = [
  [
    'an event',
    log => log.info({ event: 'logout_succeeded', session: 'a1' }, 'x'),
    'INFO  x event=logout_succeeded session=a1'
  ],
  ['an event without fields', log => log.warn('look'), 'WARN  look'],
  ['an event without a message', log => log.debug({ event: 'x' }), 'DEBUG event=x'],
  [
    'a field with spaces',
    log => log.trace({ reason: 'a b', sizes: { a: 1 } }, 'x'),
    'TRACE x reason="a b" sizes={"a":1}'
  ],
  ['a message of several lines', log => log.error('Settings:\n  port\r\n  mode'), 'ERROR Settings: | port | mode'],
  [
    'characters that a terminal interprets',
    log => log.info({ x: '\u001b[2J\u009b\u202e' }, '\u001b[2J'),
    'INFO  ?[2J x="\\u001b[2J??"'
  ],
  ['an error that is not an Error', log => log.warn({ err: 'refused' }, 'look'), 'WARN  look'],
  ['a request', log => log.info({ ...request, status: 200, aborted: false }, 'request'), 'INFO  GET /a 200 in 3 ms'],
  [
    'an aborted request',
    log => log.info({ ...request, aborted: true }, 'request'),
    'INFO  GET /a no response in 3 ms, aborted by the client'
  ],
  [
    'a request with control characters',
    log => log.info({ ...request, path: '/\u009b1m', status: 200 }, 'request'),
    'INFO  GET /?1m 200 in 3 ms'
  ],
  [
    'an unexpected error',
    log => log.fatal({ event: 'server_crashed', err: thrown('no token') }, 'the process ends'),
    'FATAL the process ends event=server_crashed\n    TypeError: no token | at handler (file:///app/routes.mjs:5:3)'
  ],
  [
    'an error of the provider',
    log =>
      log.error(
        { event: 'x', err: new ProviderError('token', 'timeout', 'no response', { durationMs: 9 }) },
        'refused'
      ),
    "ERROR refused event=x\n    provider_timeout: the identity provider's token endpoint: no response endpoint=token duration_ms=9"
  ]
]

for (const [name, write, text] of events) {
  test(`in a readable log, an event is one line, and its error is a second line: ${name}`, t => {
    t.is(shown(write, coloursFor({ stdout: {}, env: {} })), `TIME ${text}\n`)
  })
}

for (const [env, isTTY, isColoured] of [
  [{}, true, true],
  [{}, false, false],
  [{ TERM: 'dumb' }, true, false],
  [{ NO_COLOR: '1' }, true, false],
  [{ NO_COLOR: '', FORCE_COLOR: '' }, true, true],
  [{ FORCE_COLOR: '1' }, false, true],
  [{ FORCE_COLOR: '1', NO_COLOR: '1', TERM: 'dumb' }, false, true],
  [{ FORCE_COLOR: '0' }, true, false],
  [{ FORCE_COLOR: 'false' }, true, false]
] as const) {
  test(`a readable log has colours: ${isColoured}, with isTTY ${isTTY} and ${JSON.stringify(env)}`, t => {
    const text = shown(log => log.warn('look'), coloursFor({ stdout: { isTTY }, env }))
    t.is(stripVTControlCharacters(text) !== text, isColoured)
  })
}

test('a long field is cut at 2 kB and a line at 8 kB, with a mark, and the line stays JSON', async t => {
  const { log, lines, entries } = await collectLogs()
  log.info({ event: 'request', path: `/${'a'.repeat(30_000)}`, method: 'GET' }, 'served')
  t.is(entries[0]?.path, `/${'a'.repeat(2047)}… (cut, 30001 characters)`)
  const names = Array.from({ length: 20 }, (_, n) => [`field${n}`, '\u0001'.repeat(2000)])
  log.warn(
    { event: 'long', ...Object.fromEntries(names), list: Array.from({ length: 9 }, () => 'ü'.repeat(3000)) },
    'kept'
  )
  log.warn({ event: 'endless', list: Array.from({ length: 3000 }, () => 'xyz') }, 'replaced')
  for (const line of lines) t.true(Buffer.byteLength(line) <= 8192 && line.endsWith('}\n'), `${line.length}`)
  t.like(entries[1], { level: 'warn', event: 'long', msg: 'kept' })
  t.like(entries[2], { level: 'warn', event: 'endless', msg: 'this line was too long' })
})
