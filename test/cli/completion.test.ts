import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { commands } from '#src/cli/commands/index.js'
import { ownOptions, settingOptions } from '#src/cli/options.js'
import { flagName } from '#src/config/flags.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { run } from './shell.js'

const flags = [...settingOptions(), ...ownOptions]
  .filter(option => !option.hidden)
  .map(option => flagName(option.flags))

/** What bash offers for the last of the words typed. */
async function offered(t: ExecutionContext, ...typed: readonly string[]): Promise<string[]> {
  const cwd = await tempFolder(t, { 'secrets/client.txt': '', 'settings.yaml': '' })
  const { output } = await run(t, ['completion', 'bash'])
  const words = ['platform-auth-server', ...typed].map(word => `'${word}'`).join(' ')
  const script = `${output}\nCOMP_WORDS=(${words}); COMP_CWORD=${typed.length}; _platform_auth_server; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-c', script], { cwd })
  t.is(stderr, '')
  return stdout.split('\n').filter(Boolean).toSorted()
}

test('bash completes commands', async t => {
  t.deepEqual(await offered(t, ''), commands.map(command => command.name).toSorted())
  t.deepEqual(await offered(t, 'con'), ['config'])
})

test('bash completes every flag, also behind a command, with its own ones', async t => {
  t.deepEqual(await offered(t, '--'), [...flags, '--help', '--version'].toSorted())
  t.deepEqual(await offered(t, '--session-'), ['--session-max-age', '--session-secret-file'])
  t.true((await offered(t, 'config', '--')).includes('--json'))
  t.true((await offered(t, 'config', '--')).includes('--port'))
  t.deepEqual(await offered(t, 'init', '--y'), ['--yes'])
})

test('bash completes the values of a flag: words, files or folders', async t => {
  t.deepEqual(await offered(t, '--mode', ''), ['dual', 'single'])
  t.deepEqual(await offered(t, '--mode', 'dual', '--log-level', 'tr'), ['trace'])
  t.deepEqual(await offered(t, '--config', 's'), ['secrets', 'settings.yaml'])
  t.deepEqual(await offered(t, '--wwwroot', 's'), ['secrets'])
  t.deepEqual(await offered(t, '--port', ''), [])
})

test('bash completes the arguments of a command', async t => {
  t.deepEqual(await offered(t, 'completion', ''), ['bash', 'zsh'])
  t.deepEqual(await offered(t, 'secret', ''), [])
})

test('the zsh script offers every command and every flag with its sentence and its values', async t => {
  const { output } = await run(t, ['completion', 'zsh'])
  t.true(output.startsWith('#compdef platform-auth-server\n'))
  for (const { name } of commands) t.regex(output, new RegExp(`^ +'${name}:`, 'm'))
  for (const flag of flags) t.regex(output, new RegExp(`^ +'${flag}\\[.*' \\\\$`, 'm'))
  t.regex(output, /'--mode\[.*\]:value:\(single dual\)' \\/)
  t.regex(output, /'--wwwroot\[.*\]:value:_files -\/' \\/)
  t.regex(output, /'--config\[.*\]:value:_files' \\/)
})

test('a shell without completion is refused', async t => {
  const { code, errors } = await run(t, ['completion', 'fish'])
  t.deepEqual([code, errors], [2, 'There is no completion for fish, only for bash and zsh.\n'])
  t.is((await run(t, ['completion'])).code, 2)
})
