import { spawnSync } from 'node:child_process'
import { posix } from 'node:path'
import test from 'ava'
import { exitCodes } from '#src/cli/exit-codes.js'
import { readText } from '../helpers/repository.js'
import { testWhere } from '../helpers/requirement.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { secretFiles, settingsFrom } from './settings.js'

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

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0

testWhere(hasSystemd, 'systemd-analyze is not installed', 'systemd has nothing to say against the unit', async t => {
  // It looks for the programs, which are elsewhere on other machines.
  const here = unit.replace('/usr/bin/node', process.execPath)
  const folder = await tempFolder(t, { [name]: here })
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', `${folder}/${name}`], {
    encoding: 'utf8'
  })
  const said = `${stdout}${stderr}`.split('\n').filter(line => line.includes('platform-auth-server'))
  t.deepEqual([said, status], [[], 0])
})

testWhere(hasSystemd, 'systemd-analyze is not installed', 'systemd finds the unit hardly exposed', async t => {
  const folder = await tempFolder(t, { [name]: unit })
  const { stdout } = spawnSync('systemd-analyze', ['security', '--offline=true', `${folder}/${name}`], {
    encoding: 'utf8'
  })
  const [, exposure] = /Overall exposure level.*: ([\d.]+)/.exec(stdout) ?? []
  t.true(Number(exposure) > 0 && Number(exposure) < 2, exposure)
  t.log(`exposure ${exposure} of 10`)
})

test('the settings of the unit cause no warning', async t => {
  const required = {
    PLATFORM_CLIENT_ID: 'a-client',
    PLATFORM_CALLBACK_URL: 'https://app.example.com/api/auth/callback'
  }
  const { config, warnings } = await settingsFrom(t, { ...environment, ...required })
  t.deepEqual(warnings, [])
  t.is(config.port, 8081, 'the port is the name of the instance')
  const { delaySeconds, graceSeconds } = config.shutdown
  t.true(Number(values('TimeoutStopSec')) > delaySeconds + graceSeconds)
})

test('a reload of the unit reads its secrets again, from files that its first lines speak of', t => {
  t.regex(String(values('ExecReload')), /-HUP \$MAINPID$/)
  // Credentials are copied when a unit starts, and the copies stay as they are.
  t.deepEqual(values('LoadCredential'), [])
  const introduction = unit.slice(0, unit.indexOf('[Unit]'))
  for (const file of [...secretFiles(environment), ...values('EnvironmentFile')]) {
    t.is(posix.dirname(file), '/etc/platform-auth-server')
    t.true(introduction.includes(posix.basename(file)), file)
  }
})

test('a crash is followed by a restart, wrong settings are not: they would be as wrong again', t => {
  t.deepEqual(values('Restart'), ['on-failure'])
  t.deepEqual(values('RestartPreventExitStatus'), [String(exitCodes.misused)])
})

test('a system call outside of the filter is refused and does not end the server', t => {
  t.true(values('SystemCallFilter').length > 0)
  t.deepEqual(values('SystemCallErrorNumber'), ['EPERM'])
})

test('the server of the unit leaves no core dump', t => {
  t.deepEqual(values('LimitCORE'), ['0'])
})

test('the unit starts the program of the package', t => {
  const { bin } = JSON.parse(readText('package.json')) as { bin: Record<string, string> }
  const [command = ''] = values('ExecStart')
  t.is(command, `/usr/bin/node node_modules/.bin/${Object.keys(bin)}`)
})
