import { spawnSync } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { parseEnv } from 'node:util'
import test from 'ava'
import { exitCodes } from '#src/cli/terminal/expected-errors.js'
import { loadConfig } from '#src/config/load.js'
import { packageJson, readText } from '../helpers/repository.js'
import { testWhere } from '../helpers/requirement.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { runCommands, secretFiles, settingsFrom } from './settings.js'

const name = 'platform-auth-server@.service'
const unit = readText(`deploy/${name}`)

/** Every value of a key, in order. */
function values(key: string): string[] {
  return [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value)
}

const environment = Object.fromEntries(
  values('Environment')
    .flatMap(line => line.split(' '))
    .map(pair => pair.replace('%i', '8081').split('=', 2))
) as Record<string, string>

const [program] = Object.keys(packageJson.bin)

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0

const title = 'systemd-analyze finds no problem in the unit and rates its exposure below 2 of 10'
testWhere(hasSystemd, 'systemd-analyze is not installed')(title, async t => {
  // systemd-analyze checks that the program exists, and Node.js may be in another folder on this machine.
  const folder = await tempFolder(t, { [name]: unit.replace('/usr/bin/node', process.execPath) })
  const analyze = (...args: string[]) =>
    spawnSync('systemd-analyze', [...args, `${folder}/${name}`], { encoding: 'utf8' })
  const { status, stdout, stderr } = analyze('verify', '--man=no')
  const said = `${stdout}${stderr}`.split('\n').filter(line => line.includes('platform-auth-server'))
  t.deepEqual([said, status], [[], 0])
  const [, exposure] = /Overall exposure level.*: ([\d.]+)/.exec(analyze('security', '--offline=true').stdout) ?? []
  t.true(Number(exposure) > 0 && Number(exposure) < 2, exposure)
  t.log(`exposure ${exposure} of 10`)
})

const environmentFile = readText('deploy/platform-auth-server-environment')

/** The variables in the shipped environment file, and those that it only offers in comments. */
function ofFile({ offers = false } = {}): Record<string, string> {
  return parseEnv(offers ? environmentFile.replaceAll(/^#(?=[A-Z])/gm, '') : environmentFile) as Record<string, string>
}

test('the environment file has no quotes or references that systemd reads in another way than a shell', t => {
  for (const line of environmentFile.split('\n')) t.regex(line, /^(#.*|[A-Z_]+=[\w.:/@-]+|)$/)
  t.notDeepEqual(ofFile(), ofFile({ offers: true }))
})

test('the introduction installs the packed file of this version, and the unit and the environment file from it', t => {
  const introduction = unit.slice(0, unit.indexOf('[Unit]'))
  t.true(
    introduction.includes(`--prefix ${values('WorkingDirectory')} ./platform-auth-server-${packageJson.version}.tgz\n`)
  )
  for (const file of [name, 'platform-auth-server-environment']) {
    t.regex(introduction, new RegExp(`install -m 6\\d\\d .*${file.replaceAll('.', '\\.')} /etc/`), file)
  }
})

test('the commands in the introduction install the unit, its settings and its secrets, with which the server starts', async t => {
  const introduction = unit.slice(0, unit.indexOf('[Unit]'))
  const commands = [...introduction.matchAll(/^# {3}(.*)$/gm)].map(([, command = '']) => command)
  // The rehearsal of the package runs the command of npm. The others need a system with systemd and another user.
  const elsewhere = /^(useradd|npm|systemctl) /
  t.is(commands.filter(command => elsewhere.test(command)).length, 3)
  const samples = Object.fromEntries(
    [name, 'platform-auth-server-environment'].map(file => [file, readText(`deploy/${file}`)])
  )
  const installed = 'opt/platform-auth-server/node_modules/platform-auth-server/deploy'
  const folder = await tempFolder(t, {
    ...Object.fromEntries(Object.entries(samples).map(([file, text]) => [`${installed}/${file}`, text])),
    'etc/systemd/system/other.service': ''
  })
  const here = commands
    .filter(command => !elsewhere.test(command))
    .map(command => command.replaceAll(/ \/(etc|opt)\//g, ` ${folder}/$1/`))
    .map(command => command.replace(`-g ${values('User')}`, `-g ${process.getgid?.()}`))
  runCommands(t, here.join('\n'), folder)

  t.is(await readFile(join(folder, 'etc/systemd/system', name), 'utf8'), unit)
  for (const path of [...secretFiles(environment), ...values('EnvironmentFile')]) {
    t.is((await stat(folder + path)).mode & 0o777, 0o640, path)
  }
  const variables = { ...environment, ...ofFile(), PLATFORM_CLIENT_ID: 'a-client' }
  const env = Object.entries(variables).map(([key, value]) => [key, value.replace(/^\/etc\//, `${folder}/etc/`)])
  const { config, warnings } = await loadConfig({ env: Object.fromEntries(env), cwd: folder })
  t.deepEqual(warnings, [])
  t.is(config.platform.clientSecret, 'gH5tR2wQ8zXc7VbN')
})

test('the settings of the unit and those that the environment file offers in comments cause no warning', async t => {
  const { config, warnings } = await settingsFrom(t, { ...environment, ...ofFile(), PLATFORM_CLIENT_ID: 'a-client' })
  t.deepEqual(warnings, [])
  t.is(config.port, 8081, 'the instance name is the port')
  const { delaySeconds, graceSeconds } = config.shutdown
  t.true(Number(values('TimeoutStopSec')) > delaySeconds + graceSeconds)
  const { PLATFORM_AUTH_WWWROOT: folder, ...offered } = ofFile({ offers: true })
  t.is(folder, '/srv/www')
  const withOffered = await settingsFrom(t, { ...environment, ...offered, PLATFORM_CLIENT_ID: 'a-client' })
  t.deepEqual(withOffered.warnings, [])
  t.is(withOffered.config.redis.url?.kind, 'single')
})

test('a reload of the unit makes the server read its secrets again, and the introduction lists their files', t => {
  t.regex(String(values('ExecReload')), /-HUP \$MAINPID$/)
  // LoadCredential would copy the secrets at start, so a reload would not see new ones.
  t.deepEqual(values('LoadCredential'), [])
  const introduction = unit.slice(0, unit.indexOf('[Unit]'))
  for (const file of [...secretFiles(environment), ...values('EnvironmentFile')]) {
    t.is(posix.dirname(file), '/etc/platform-auth-server')
    t.true(introduction.includes(posix.basename(file)), file)
  }
})

for (const [what, key, expected] of [
  ['does not restart it after an error in its settings', 'RestartPreventExitStatus', [String(exitCodes.misused)]],
  ['starts the program of the package', 'ExecStart', [`/usr/bin/node node_modules/${program}/bin/${program}.js`]]
] as const) {
  test(`the unit ${what}`, t => t.deepEqual(values(key), expected))
}
