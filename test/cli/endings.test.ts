// The end of the program as a supervisor, a container or a terminal sees it, tested with a separate process.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { constants } from 'node:os'
import test, { type ExecutionContext } from 'ava'
import { createBrowser } from '../helpers/browser.js'
import { defaultCallbackUrl, publicOrigin } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import {
  commandWithMovableClock,
  defaultCommand,
  environmentFor,
  type Program,
  type ProgramOptions,
  startProgram
} from '../helpers/program.js'
import { testWhere } from '../helpers/requirement.js'
import { runCommand } from '../helpers/run-command.js'
import { openCallback, signIn, startLogin } from '../helpers/server.js'
import { tempFolder } from '../helpers/temp-folder.js'

const fine = { code: 0, signal: null }
const failed = { code: 1, signal: null }

interface Options extends ProgramOptions {
  /** Code that runs in the server's process while it reads its settings. */
  readonly inside?: string
}

async function start(t: ExecutionContext, { inside, env = {}, ...options }: Options = {}) {
  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
  const config = 'platform-auth-server.config.mjs'
  const cwd = await tempFolder(t, inside === undefined ? {} : { [config]: `${inside}\nexport default {}` })
  const program = await startProgram(t, {
    cwd,
    env: { ...environmentFor(idp, defaultCallbackUrl), PLATFORM_AUTH_MODE: 'dual', ...env },
    ...options
  })
  const browser = createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: program.url } })
  return { idp, program, browser }
}

/** Starts the server, signs in and moves the server's clock until the tokens have expired. */
async function startWithExpiredSession(t: ExecutionContext) {
  const started = await start(t, { command: commandWithMovableClock })
  await signIn(started.browser)
  started.program.signal('SIGUSR2')
  await started.program.logged('clock_moved')
  return started
}

test('process 1 of a container ends at a signal that arrives before the program is loaded', async t => {
  // The kernel drops a signal for process 1 that has no listener, so the signal is sent with the first listener.
  const preload = `
    Object.defineProperty(process, 'pid', { value: 1 })
    const { on } = process
    process.on = function (signal, listener) {
      on.call(this, signal, listener)
      if (signal === 'SIGTERM') this.emit('SIGTERM', 'SIGTERM', 15)
      return this
    }`
  const [file = '', ...args] = defaultCommand
  const command = [file, '--import', `data:text/javascript,${encodeURIComponent(preload)}`, ...args]
  const { status, stderr, stdout } = await runCommand(command, { cwd: await tempFolder(t), env: {} })
  t.deepEqual([status, stdout, stderr], [128 + constants.signals.SIGTERM, '', ''])
})

/**
 * Waits until the server accepts no more connections. It only connects, because fetch never settles if a connection
 * ends before it was used.
 */
async function untilItRefuses({ url }: Program) {
  const { port, hostname: host } = new URL(url)
  const accepts = () =>
    new Promise<boolean>(resolve => {
      const socket = connect({ port: Number(port), host })
      socket.on('connect', () => {
        socket.destroy()
        resolve(true)
      })
      socket.on('error', () => resolve(false))
    })
  await eventually(async () => !(await accepts()))
}

for (const stop of ['SIGTERM', 'SIGINT'] as const) {
  test(`${stop} during a slow refresh: the browser gets its response and the new cookie, and the exit code is 0`, async t => {
    const { idp, program, browser } = await startWithExpiredSession(t)
    const hold = idp.hold('token')
    const asked = browser.fetch('/api/auth/token')
    await hold.arrived()
    program.signal(stop)
    // The server no longer listens, but it still runs because a request is in progress.
    await untilItRefuses(program)
    t.is(program.child.exitCode, null)
    const released = performance.now()
    hold.release()
    const response = await asked
    t.is(response.statusCode, 200)
    t.true(response.setCookies.some(({ name, value }) => name === 'platform_session' && value.length > 100))
    t.true(idp.isAlive(idp.issued.refreshTokens.at(-1)?.value ?? ''))
    t.deepEqual(await program.ended, fine)
    t.true(performance.now() - released < 5000, 'the server does not wait for idle connections')
    t.is(program.stderr(), '')
  })
}

for (const [what, fault] of [
  ['an uncaught error', "throw new Error('out of the blue')"],
  ['an unhandled rejection', "Promise.reject(new Error('out of the blue'))"],
  ['an uncaught value that is not an error', "throw 'out of the blue'"]
] as const) {
  test(`${what} is logged as one fatal line, and the exit code is 1`, async t => {
    const { program } = await start(t, { inside: `process.on('SIGUSR2', () => { ${fault} })` })
    program.signal('SIGUSR2')
    t.deepEqual(await program.ended, failed)
    const lines = program.lines.filter(({ event }) => event !== 'server_started')
    t.is(lines.length, 1)
    const [line] = lines
    t.is(line?.event, 'server_crashed')
    t.is(line?.level, 'fatal')
    t.regex(JSON.stringify(line?.err), /out of the blue/)
    t.is(program.stderr(), '')
  })
}

// The server runs as process 1 in a PID namespace, as in a container. The kernel delivers to this process only the
// signals for which it has a handler.
const unshare = ['unshare', '--pid', '--fork', '--kill-child']
const canUnshare = spawnSync('unshare', [...unshare.slice(1), 'true']).status === 0

/** The file with the ids of the child processes (proc(5)). */
const childrenOf = (pid = process.pid) => `/proc/${pid}/task/${pid}/children`

const canBeFirst = canUnshare && existsSync(childrenOf())

const testAsFirst = testWhere(canBeFirst, 'this machine does not allow a new PID namespace')

testAsFirst('the program handles signals as process 1 of a container', async t => {
  const { program, browser } = await start(t, {
    command: [...unshare, ...defaultCommand],
    inside: "if (process.pid !== 1) throw new Error('it is not')"
  })
  const { pid } = program.child
  const server = Number(readFileSync(childrenOf(pid), 'utf8'))
  await signIn(browser)
  process.kill(server, 'SIGHUP')
  await program.logged('secrets_reloaded')
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  process.kill(server, 'SIGTERM')
  t.deepEqual(await program.ended, fine)
})

// npm starts a program through a shell, which survives if npm is killed.
const likeNpm = `require('node:child_process').spawn('sh', ['-c', '"$0" "$@"; true', ...process.argv.slice(1)], {
  stdio: 'inherit',
  env: { ...process.env, npm_command: 'exec' }
})`

const testWithProc = testWhere(existsSync('/proc/self/stat'), 'this system has no /proc')

for (const signal of ['SIGKILL', 'SIGHUP'] as const) {
  testWithProc(`a server that npm started finishes its requests and stops if npm ends by ${signal}`, async t => {
    const { idp, program, browser } = await start(t, {
      command: [process.execPath, '-e', likeNpm, '--', ...defaultCommand]
    })
    const callback = await startLogin(browser)
    const hold = idp.hold('token')
    const answer = openCallback(browser, callback)
    await hold.arrived()
    program.signal(signal)
    t.is((await program.logged('server_stopping')).reason, 'parent_ended')
    hold.release()
    t.is((await answer).statusCode, 302)
    await program.logged('server_stopped')
  })
}

// The program `script` opens a terminal and runs a command in it. The terminal is closed when `script` is killed.
const hasScript = spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0

for (const [what, prefix, outcome, signal] of [
  ['stops when its terminal is closed', '', 'server_stopped', 'SIGHUP'],
  ['continues when its terminal is closed if it was started with nohup', 'nohup ', 'secrets_reloaded', 'SIGKILL']
] as const) {
  testWhere(hasScript, 'the program script is not installed')(`the server ${what}`, async t => {
    const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
    const cwd = await tempFolder(t)
    // The kernel sends SIGHUP only to the shell, which passes it on, as an interactive shell does. The first `wait` ends at
    // the signal.
    const server = defaultCommand.map(word => `'${word}'`).join(' ')
    const command = `trap 'kill -HUP $p' HUP; ${prefix}${server} >log & p=$!; echo $p >pid; wait $p; wait $p; echo $? >code`
    const env = { PATH: process.env.PATH, ...environmentFor(idp, defaultCallbackUrl) }
    const terminal = spawn('script', ['-qfec', command, '/dev/null'], { cwd, env, stdio: ['pipe', 'ignore', 'ignore'] })
    t.teardown(() => terminal.kill('SIGKILL'))
    const read = (name: string) => (existsSync(`${cwd}/${name}`) ? readFileSync(`${cwd}/${name}`, 'utf8') : '')
    await eventually(() => read('log').includes('server_started'))
    const pid = Number(read('pid'))
    t.teardown(() => existsSync(`/proc/${pid}`) && process.kill(pid, 'SIGKILL'))
    terminal.kill('SIGKILL')
    await eventually(() => read('log').includes(outcome))
    if (signal === 'SIGKILL') {
      t.notRegex(read('log'), /server_stopping/)
      process.kill(pid, signal)
    } else t.regex(read('log'), /"reason":"terminal_closed"/)
    await eventually(() => read('code') !== '')
    t.is(Number(read('code')), 128 + constants.signals[signal], `128 and the number of ${signal}`)
  })
}
