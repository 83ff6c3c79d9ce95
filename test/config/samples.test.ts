import { spawnSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { ConfigError } from '#src/config/errors.js'
import { loadConfig } from '#src/config/load.js'
import { required, type SettingKey, settingKeys, settingOf } from '#src/config/settings.js'
import { shortFile } from '#src/config/settings-file.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { enough, keysOf } from './given.js'

const root = new URL('../../', import.meta.url)
const textOf = (path: string) => readFile(new URL(path, root), 'utf8')
const samples = (await readdir(new URL('config/', root))).filter(name => name !== 'schema.json')

test('the README, docs/configuration.md, config/ and the chart agree with the settings table', t => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/reference.js', '--check'], {
    cwd: root,
    encoding: 'utf8'
  })
  t.deepEqual({ status, stderr }, { status: 0, stderr: '' })
})

test('the README lists all required settings, and docs/configuration.md lists every setting', async t => {
  const rowOf = (key: SettingKey) => `| \`${key}\`<br>\`${settingOf(key).env}\``
  const [readme, page] = await Promise.all([textOf('README.md'), textOf('docs/configuration.md')])
  for (const key of settingKeys) {
    t.true(page.includes(rowOf(key)), key)
    if (settingOf(key).default === required) t.true(readme.includes(rowOf(key)), key)
  }
})

test('config/ contains exactly the documented samples', t => {
  t.deepEqual(samples.toSorted(), ['dual.yaml', 'full.yaml', 'issuer.yaml', 'minimal.yaml', 'single.yaml'])
})

for (const sample of samples) {
  const configFile = fileURLToPath(new URL(`config/${sample}`, root))

  test(`the sample ${sample} is valid once the secrets and the client id are given`, async t => {
    const { SERVER_SESSION_SECRET, PLATFORM_CLIENT_SECRET, PLATFORM_CLIENT_ID } = enough
    const env = { SERVER_SESSION_SECRET, PLATFORM_CLIENT_SECRET, PLATFORM_CLIENT_ID }
    const { config, warnings } = await loadConfig({ configFile, env, cwd: await tempFolder(t) })
    t.deepEqual(warnings, [])
    if (sample === 'dual.yaml' || sample === 'single.yaml') t.is(`${config.mode}.yaml`, sample)
    if (sample === 'issuer.yaml') t.is(config.platform.issuer, 'https://login.example.com/tenant')
  })

  test(`the sample ${sample} is refused until its placeholder is replaced`, async t => {
    const { SERVER_SESSION_SECRET, PLATFORM_CLIENT_SECRET } = enough
    const env = { SERVER_SESSION_SECRET, PLATFORM_CLIENT_SECRET }
    const error = await t.throwsAsync(loadConfig({ configFile, env, cwd: await tempFolder(t) }), {
      instanceOf: ConfigError
    })
    t.deepEqual(keysOf(error?.problems), ['platform.clientId'])
  })
}

test('the dual sample sets a refresh margin and a spread', async t => {
  const configFile = fileURLToPath(new URL('config/dual.yaml', root))
  const { config } = await loadConfig({ configFile, env: enough, cwd: await tempFolder(t) })
  t.like(config.refresh, { marginSeconds: 120, spreadSeconds: 1500 })
})

test('a settings file written from values gives the same values when it is read', async t => {
  const text = shortFile({
    mode: 'dual',
    port: 80,
    host: '::',
    'session.cookieName': 'yes',
    'platform.clientId': '#a"b',
    'platform.prompt': 'login consent',
    'platform.publicScopes': ['viewables:read'],
    'platform.pkce': false,
    'platform.revocationEndpoint': 'none'
  })
  const cwd = await tempFolder(t, { 'platform-auth-server.config.yaml': text })
  const { config } = await loadConfig({ cwd, env: { ...enough, PLATFORM_CLIENT_ID: undefined } })
  t.is(config.mode, 'dual')
  t.is(config.port, 80)
  t.is(config.host, '::')
  t.is(config.session.cookieName, 'yes')
  t.is(config.platform.clientId, '#a"b')
  t.is(config.platform.prompt, 'login consent')
  t.deepEqual(config.platform.publicScopes, ['viewables:read'])
  t.is(config.platform.pkce, false)
  t.is(config.platform.revocationEndpoint, 'none')
})
