import test from 'ava'
import { withFlagsOfContainer } from '#src/cli/terminal/container.js'
import { enough } from '../config/given.js'
import { freePort } from '../helpers/ports.js'
import { defaultCommand } from '../helpers/program.js'
import { runCommand } from '../helpers/run-command.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { run, startServer } from './shell.js'

interface Given {
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

// No server listens on port 1.
const variables = { ...enough, PLATFORM_ISSUER: 'http://127.0.0.1:1' }

for (const [what, { args = [], env = {} }] of Object.entries<Given>({
  'with a flag': { args: ['--host', '127.0.0.1'] },
  'in a demo': { args: ['--demo'] },
  'with a variable': { env: { PLATFORM_AUTH_HOST: '::1' } },
  'on all addresses': { env: { PLATFORM_AUTH_HOST: '::' } }
})) {
  // Serial, because the command waits for three seconds at most, in which other tests may load packages.
  test.serial(`health asks the address at which the server listens ${what}`, async t => {
    const { log } = await startServer(t, [...args, '--port', '0'], { env: { ...variables, ...env } })
    const { port } = new URL(String(log().find(({ event }) => event === 'server_started')?.url))
    const health = await run(t, ['health', ...args, '--port', port], { env: { ...variables, ...env } })
    t.like(health, { code: 0, output: '', errors: '' })
  })
}

test('health fails if no server responds, also as a program', async t => {
  const command = [...defaultCommand, 'health', '--port', String(await freePort())]
  const { status, stderr } = await runCommand(command, { cwd: await tempFolder(t), env: variables })
  t.is(status, 1)
  t.regex(stderr, /http:\/\/localhost:\d+\/healthz/)
})

for (const [commandLine, expected] of [
  ['node bin/platform-auth-server.js', 'health'],
  ['node bin/platform-auth-server.js --port 9000', 'health --port 9000'],
  ['/sbin/docker-init -- node /app/bin/platform-auth-server.js start -p 9000', 'health -p 9000'],
  ['/usr/lib/systemd/systemd splash', 'health']
] as const) {
  test(`health uses the flags of process 1: ${commandLine}`, t => {
    const read = () => `${commandLine.replaceAll(' ', '\0')}\0`
    t.deepEqual(withFlagsOfContainer(['health'], read), expected.split(' '))
    t.deepEqual(withFlagsOfContainer(['health', '-p', '1'], read), ['health', '-p', '1'])
    t.deepEqual(withFlagsOfContainer(['check'], read), ['check'])
  })
}

test('health uses its own settings where process 1 cannot be seen', t => {
  t.deepEqual(
    withFlagsOfContainer(['health'], () => {
      throw new Error('ENOENT')
    }),
    ['health']
  )
})
