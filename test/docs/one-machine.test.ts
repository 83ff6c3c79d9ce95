// Follows the ten steps of docs/deploy/one-machine.md and docs/deploy/kubernetes.md as far as that is possible without Docker and a cluster.
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { Ajv } from 'ajv'
import test from 'ava'
import { defaultLoaders } from 'cosmiconfig'
import { loadConfig } from '#src/config/load.js'
import { chartFolder } from '../deploy/chart.js'
import { runCommands, typedSecret } from '../deploy/settings.js'
import { fencedBlocks, linesOf } from '../helpers/markdown.js'
import { readText } from '../helpers/repository.js'
import { tempFolder } from '../helpers/temp-folder.js'

const oneMachine = readText('docs/deploy/one-machine.md')
const [kubernetes = ''] = readText('docs/deploy/kubernetes.md').split(/^## .*$/m)

function blockWith(section: string, text: string): string {
  const blocks = fencedBlocks(section).filter(block => block.text.includes(text))
  if (blocks.length !== 1) throw new Error(`${blocks.length} blocks contain ${text}`)
  return blocks.map(block => block.text.replaceAll(/^ {3}/gm, '')).join()
}

test('one machine: the commands for the secrets are those of deploy/compose.yaml, which another test runs', t => {
  // In a subshell, neither the folder nor the umask nor the secrets stay in the shell of the operator.
  const [, commands = ''] = /^(# {3}\(\n(?:# {5}.*\n)+# {3}\)\n)/m.exec(readText('deploy/compose.yaml')) ?? []
  t.deepEqual(linesOf(blockWith(oneMachine, 'requirepass')), linesOf(commands.replaceAll(/^# {3}/gm, '')))
})

test('one machine: server.env has the host that Caddy needs, and no variable that a Compose file sets', t => {
  const files = ['deploy/compose.yaml', 'deploy/compose.caddy.yaml'].map(readText).join('\n')
  const given = parseEnv(blockWith(oneMachine, 'PUBLIC_HOST='))
  t.is(given.PUBLIC_HOST, new URL(given.PLATFORM_CALLBACK_URL ?? '').host)
  for (const name of Object.keys(given)) t.false(files.includes(`    ${name}: `), name)
})

test('Kubernetes: the commands create the secrets, with which the server starts', async t => {
  const folder = await tempFolder(t)
  const script = `kubectl() { echo "$@"; }\n${blockWith(kubernetes, 'requirepass')}`
  const output = runCommands(t, script, folder)
  const path = (name: string) => join(folder, 'deploy/secrets', name)
  const names = [...output.matchAll(/--from-file=(\S+)/g)].map(([, name = '']) => name)
  t.deepEqual(names, ['redis.conf', 'client-secret', 'session-secret', 'previous-secrets', 'redis-url'])
  for (const name of names) t.is((await stat(path(name))).mode & 0o777, 0o600, name)

  const env = {
    PLATFORM_CLIENT_ID: 'a-client',
    PLATFORM_CALLBACK_URL: 'https://app.example.com/api/auth/callback',
    PLATFORM_AUTH_ACCESS_ALLOW: '@example.com',
    PLATFORM_CLIENT_SECRET_FILE: path('client-secret'),
    SERVER_SESSION_SECRET_FILE: path('session-secret'),
    SERVER_SESSION_PREVIOUS_SECRETS_FILE: path('previous-secrets'),
    REDIS_URL_FILE: path('redis-url')
  }
  const { config, warnings } = await loadConfig({ env, cwd: folder })
  t.deepEqual(warnings, [])
  t.is(config.platform.clientSecret, typedSecret)
  t.is(await readFile(path('redis.conf'), 'utf8'), `requirepass ${config.redis.url?.password}\n`)
})

test('Kubernetes: the chart accepts the values', t => {
  const values: unknown = defaultLoaders['.yaml']('values.yaml', blockWith(kubernetes, 'callbackUrl:'))
  const validate = new Ajv({ strict: false }).compile(JSON.parse(readText(`${chartFolder}/values.schema.json`)))
  t.true(validate(values), JSON.stringify(validate.errors))
})
