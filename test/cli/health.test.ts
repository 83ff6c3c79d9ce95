import { spawnSync } from 'node:child_process'
import test, { type ExecutionContext } from 'ava'
import { withFlagsOfContainer } from '#src/cli/terminal/container.js'
import { defaultCallbackUrl } from '../helpers/config.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { defaultCommand, environmentFor, startProgram } from '../helpers/program.js'
import { tempFolder } from '../helpers/temp-folder.js'

interface Given {
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** Runs `health` with the host and port of a server that was started with `given`. */
async function healthOf(t: ExecutionContext, { args = [], env = {} }: Given, { stops = false } = {}) {
  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
  const cwd = await tempFolder(t)
  const variables = { ...environmentFor(idp, defaultCallbackUrl), ...env }
  const [file = '', ...script] = defaultCommand
  const program = await startProgram(t, { cwd, env: variables, args })
  if (stops) {
    program.signal('SIGTERM')
    await program.ended
  }
  const { port } = new URL(program.url)
  const { PORT: _, ...others } = variables
  const health = spawnSync(file, [...script, 'health', ...args, '--port', port], { cwd, env: others, encoding: 'utf8' })
  return { status: health.status, output: health.stdout + health.stderr }
}

for (const [what, given] of Object.entries({
  'with a flag': { args: ['--host', '127.0.0.1'] },
  'in a demo': { args: ['--demo'] },
  'with a variable': { env: { PLATFORM_AUTH_HOST: '::1' } },
  'on all addresses': { env: { PLATFORM_AUTH_HOST: '::' } }
})) {
  test(`health asks the address at which the server listens ${what}`, async t => {
    t.deepEqual(await healthOf(t, given), { status: 0, output: '' })
  })
}

test('health fails if no server responds', async t => {
  const { status, output } = await healthOf(t, {}, { stops: true })
  t.is(status, 1)
  t.regex(output, /http:\/\/127\.0\.0\.1:\d+\/healthz/)
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
