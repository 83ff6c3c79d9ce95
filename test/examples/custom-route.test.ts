// The server runs in dual mode. The internal token has the wide scope and stays on the server, and the public token has
// fewer scopes and is given to pages.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { symlink, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import test from 'ava'
import { createBrowser } from '../helpers/browser.js'
import { defaultCallbackUrl, publicOrigin } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { listen } from '../helpers/ports.js'
import { environmentFor, movableClock } from '../helpers/program.js'
import { repository } from '../helpers/repository.js'
import { signIn, startTestServer } from '../helpers/server.js'
import { tempFolder } from '../helpers/temp-folder.js'

const path = `${repository}examples/custom-route.js`

test('the example calls the platform only if a user is signed in, and with the internal token, which is refreshed after it has expired', async t => {
  const asked: (string | undefined)[] = []
  const server = http.createServer((request, response) => {
    asked.push(request.headers.authorization)
    response.setHeader('content-type', 'application/json')
    response.end('{"data":["a hub"]}')
  })
  const hubsUrl = `http://127.0.0.1:${await listen(t, server)}`
  const { default: addHubs } = await import(path)
  const { browser, clock } = await startTestServer(t, {
    mode: 'dual',
    parts: { extension: (app, tools) => addHubs(app, tools, hubsUrl) }
  })
  const refused = await browser.get('/api/hubs')
  t.deepEqual([refused.statusCode, refused.text(), asked], [401, '', []])

  await signIn(browser)
  t.deepEqual((await browser.get('/api/hubs')).json(), { data: ['a hub'] })
  clock.advanceSeconds(3600)
  t.is((await browser.get('/api/hubs')).statusCode, 200)
  t.not(asked[0], asked[1])
  t.regex(String(asked[1]), /^Bearer .+/)
  const { access_token: publicToken } = (await browser.get('/api/auth/token')).json() as { access_token: string }
  t.false(asked.includes(`Bearer ${publicToken}`), 'the platform never received the public token')
})

test('run as a program, the example reads its secrets again on SIGHUP and finishes requests in progress on SIGTERM', async t => {
  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
  const { SERVER_SESSION_SECRET: secret = '', ...settings } = environmentFor(idp, defaultCallbackUrl)
  const cwd = await tempFolder(t, { '.env': `SERVER_SESSION_SECRET=${secret}\n` })
  const program = spawn(process.execPath, ['--import', movableClock, path], { cwd, env: settings })
  t.teardown(() => program.kill('SIGKILL'))
  const ended = once(program, 'close')
  let complaints = ''
  program.stderr.on('data', chunk => {
    complaints += chunk
  })
  const lines = createInterface(program.stdout)
  const [line] = await once(lines, 'line')
  const [url = ''] = /http:\S+$/.exec(line) ?? []
  const browser = createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: url } })
  await signIn(browser)

  await writeFile(join(cwd, '.env'), 'SERVER_SESSION_SECRET=short\n')
  program.kill('SIGHUP')
  await eventually(() => complaints.includes('session.secret'))
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  await writeFile(join(cwd, '.env'), `SERVER_SESSION_SECRET=${secret.split('').reverse().join('')}\n`)
  program.kill('SIGHUP')
  while ((await browser.fetch('/api/auth/profile')).statusCode === 200) t.is(program.exitCode, null)

  await signIn(browser)
  const moved = once(lines, 'line')
  program.kill('SIGUSR2')
  await moved
  const hold = idp.hold('token')
  const asked = browser.fetch('/api/auth/profile')
  await hold.arrived()
  program.kill('SIGTERM')
  hold.release()
  const response = await asked
  t.is(response.statusCode, 200)
  t.true(response.setCookies.length > 0)
  t.deepEqual(await ended, [0, null])
})

test('run as a program through a symbolic link, the example reports in one message why it cannot start', async t => {
  const cwd = await tempFolder(t)
  const link = join(cwd, 'started-by.js')
  await symlink(path, link)
  const taken = String(await listen(t, http.createServer()))
  const settings = environmentFor(
    { clientId: 'me', clientSecret: 'x', issuer: 'http://127.0.0.1:1' },
    defaultCallbackUrl
  )
  for (const [port, says] of [
    ['x', /^The settings cannot be used:\n {2}port \(variable PORT\) .*\n$/],
    [taken, /^listen EADDRINUSE: .*\n$/]
  ] as const) {
    const program = spawn(process.execPath, [link], { cwd, env: { ...settings, PORT: port } })
    const [complaint, [code]] = await Promise.all([text(program.stderr), once(program, 'close')])
    t.regex(complaint, says)
    t.is(code, 1)
  }
})
