import { createServer } from 'node:http'
import { stripVTControlCharacters } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { listenError } from '#src/cli/terminal/expected-errors.js'
import { loadConfig } from '#src/config/load.js'
import { enough } from '../config/given.js'
import { createBrowser } from '../helpers/browser.js'
import { goldenFile } from '../helpers/golden.js'
import { carries } from '../helpers/messages.js'
import { freePort, listen } from '../helpers/ports.js'
import { openCallback } from '../helpers/server.js'
import { signInAtDemo } from '../helpers/sign-in.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { run, type ShellOptions, startServer } from './shell.js'

// No server listens on port 1, so no test sends a request to the real provider.
const env = { ...enough, PORT: '0', PLATFORM_ISSUER: 'http://127.0.0.1:1' }

const started = (t: ExecutionContext, args: readonly string[], options: ShellOptions = {}) =>
  startServer(t, args, { env, ...options })

test('on a terminal the server prints its address, mode, pages and the callback URL to register', async t => {
  const { output, log, ended, stop } = await started(t, ['--mode', 'dual'], { isTTY: true })
  const lines = stripVTControlCharacters(output())
    .split('\n')
    .map(line => line.trim().replace(/ +/g, ' '))
  t.regex(lines[1] ?? '', /^platform-auth-server \d+\.\d+\.\d+$/)
  const [, url = ''] = /^➜ Open: (http:\S+)\/$/.exec(lines[3] ?? '') ?? []
  t.is(lines[4], '➜ Mode: dual')
  t.regex(lines[5] ?? '', /^➜ Files: \/\S+\/wwwroot$/)
  t.is(lines[6], `➜ Callback: ${enough.PLATFORM_CALLBACK_URL}`)
  t.is(lines[7], '(register this URL with the provider)')
  t.is((await fetch(`${url}/healthz`)).status, 200)
  t.deepEqual(log(), [])
  stop()
  t.is(await ended, 0)
})

test('without any settings the error begins with the commands for a first start', async t => {
  const { code, errors } = await run(t, [])
  t.is(code, 2)
  const [, demo, init] = errors.split('\n')
  t.regex(demo ?? '', /^ {2}npx platform-auth-server --demo /)
  t.regex(init ?? '', /^ {2}npx platform-auth-server init /)
  // With a file that is not read, this file is probably the reason, and a new file would not help.
  for (const given of [{ env: { PORT: 'x' } }, { files: { 'platform-auth-server.config.toml': 'port = 1' } }])
    t.notRegex((await run(t, [], given)).errors, /npx platform-auth-server/)
})

test('when the output is not a terminal, the server logs its start as one JSON line', async t => {
  const { output, log } = await started(t, ['start'])
  t.is(output(), '')
  const [line, ...more] = log()
  t.deepEqual(more, [])
  t.like(line, { event: 'server_started', mode: 'single', callback_url: enough.PLATFORM_CALLBACK_URL })
  t.is((await fetch(`${line?.url}/healthz`)).status, 200)
})

test('the start logs warnings about settings, also about mistakes that need no network to be found', async t => {
  const port = await freePort()
  const { log } = await started(t, ['--port', String(port), '--wwwroot', 'pages'], {
    env: { ...enough, PLATFORM_ISSUER: 'http://127.0.0.1:1' },
    files: { 'pages/app.html': '', 'platform-auth-server.yaml': 'mode: dual' }
  })
  const warnings = log().filter(({ event }) => event === 'setting_warning')
  const sources = warnings.map(({ level, setting, source }) => [level, setting, source])
  t.deepEqual(sources, [
    ['warn', 'platform-auth-server.yaml', 'working directory'],
    ['warn', 'platform.callbackUrl', 'variable PLATFORM_CALLBACK_URL'],
    ['warn', 'wwwroot', 'flag --wwwroot']
  ])
  carries(t, String(warnings[1]?.msg), `8080 ${port} --port 8080`)
  carries(t, String(warnings[2]?.msg), '/pages/index.html 404 Create wwwroot')
})

test('a port in use is reported in one sentence with the flag that sets it, and the exit code is 1', async t => {
  const port = await listen(t, createServer())
  for (const [flag, args, variables] of [
    ['--port', ['--port', String(port)], env],
    ['--port', ['--demo', '--port', String(port)], {}],
    ['--metrics-address', ['--metrics-address', `127.0.0.1:${port}`], env]
  ] as const) {
    const { code, errors, output } = await run(t, args, { env: variables })
    t.deepEqual([code, output, errors.trimEnd().split('\n').length], [1, '', 1])
    carries(t, errors, `${port} in use ${flag}.`)
  }
})

for (const host of ['0.0.0.0', '127.0.0.1']) {
  test(`a login at a demo on ${host} succeeds at the address that the server announces`, async t => {
    const { log } = await started(t, ['--demo', '--port', '0', '--host', host], { env: {} })
    const line = log().find(({ event }) => event === 'server_started')
    const browser = createBrowser(t, { origin: String(line?.url) })
    t.is(line?.callback_url, `${line?.url}/api/auth/callback`)
    const callback = await openCallback(browser, await signInAtDemo(browser, '/api/auth/login', 'Ada Lovelace'))
    t.is(callback.statusCode, 302)
    t.deepEqual((await browser.fetch('/api/auth/profile')).json(), { name: 'Ada Lovelace' })
  })
}

test('the settings of a demo contain no value for the real provider, and only flags take precedence over them', async t => {
  const endpoints = ['AUTHORIZATION', 'TOKEN', 'USERINFO', 'REVOCATION', 'END_SESSION']
  const real = Object.fromEntries(endpoints.map(name => [`PLATFORM_${name}_ENDPOINT`, 'https://provider.example/']))
  const { config, sources } = await loadConfig({
    env: { ...env, ...real, PLATFORM_CLIENT_AUTH_METHOD: 'client_secret_post' },
    flags: { 'platform.callbackUrl': 'https://app.example.com/api/auth/callback' },
    cwd: await tempFolder(t),
    demo: true
  })
  t.false(JSON.stringify(config).includes('provider.example'))
  t.is(config.platform.clientAuthMethod, 'client_secret_basic')
  t.is(config.platform.callbackUrl, 'https://app.example.com/api/auth/callback')
  for (const key of ['session.secret', 'platform.clientId', 'platform.clientSecret', 'platform.issuer'] as const) {
    t.is(sources[key], 'demo')
  }
})

const demoLine = /Demo: +http:\/\/127\.0\.0\.1:\d+ \(sign in as anyone, without a password\)\n/

for (const args of [[], ['--demo']]) {
  test(`what the server prints at its start fits into 80 columns, and a demo prints the address of its provider: ${args.join(' ') || 'without flags'}`, async t => {
    const options = { isTTY: true, cwd: await tempFolder(t), env: args.length > 0 ? { PORT: '0' } : env }
    const { output } = await started(t, args, options)
    const text = stripVTControlCharacters(output())
    t.is(demoLine.test(text), args.length > 0)
    const lines = text.split('\n')
    t.true(lines.some(line => line.includes('the starter page')))
    const tooLong = lines.filter(line => line.length > 80)
    t.deepEqual(tooLong, [])
  })
}

test('NODE_TLS_REJECT_UNAUTHORIZED=0, which disables the check of certificates, is logged as a warning', async t => {
  const { log } = await started(t, [], { env: { ...env, NODE_TLS_REJECT_UNAUTHORIZED: '0' } })
  const warning = log().find(({ event }) => event === 'tls_not_verified')
  t.is(warning?.level, 'warn')
  carries(t, String(warning?.msg), 'NODE_TLS_REJECT_UNAUTHORIZED=0 disables Remove')
})

const compare = goldenFile('test/cli/start.txt')

test('a start with unusable settings', async t => {
  const { code, output, errors } = await run(t, [], {
    env: { PORT: 'x', SERVER_SESSION_SECRET: '  ', PLATFORM_AUTH_MOD: 'dual' },
    files: { '.platform-auth-serverrc': 'platform: { callbackUrl: "" }' }
  })
  compare(t, errors.trimEnd())
  t.deepEqual([code, output], [2, ''])
})

const listenFaults: readonly object[] = [
  { code: 'EADDRINUSE', port: 80 },
  { code: 'EACCES', port: 8080 },
  { code: 'EADDRNOTAVAIL', address: '192.0.2.1' },
  { code: 'EADDRNOTAVAIL', address: '192.0.2.1', listener: 'metrics' },
  { code: 'EADDRINUSE', port: 4181, listener: 'forwardAuth' },
  { code: 'ENOTFOUND' },
  { code: 'ENOMEM' }
]

test('a listen error is explained in one sentence', t => {
  const errors = listenFaults.map(fault => listenError(Object.assign(new Error('out of luck'), fault)))
  compare(t, errors.map(({ message }) => message).join('\n'))
})

test('an unexpected error is reported in one sentence', async t => {
  const cwd = `${await tempFolder(t)}/gone`
  const { code, errors } = await run(t, ['init', '--yes'], { cwd })
  t.is(code, 1)
  t.regex(errors, /^platform-auth-server failed: ENOENT: .*\n$/)
})
