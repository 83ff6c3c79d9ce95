import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { ConfigError } from '#src/config/errors.js'
import { loadConfig } from '#src/config/load.js'
import { fullSample, sampleFile } from '#src/config/sample.js'
import { everydaySettings, jsonSchema, referenceTable, withReference } from '#src/config/schema.js'
import { required, settingKeys, settingOf } from '#src/config/settings.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { enough } from './given.js'

const root = new URL('../../', import.meta.url)
const textOf = (path: string) => readFile(new URL(path, root), 'utf8')
const samples = (await readdir(new URL('config/', root))).filter(name => name !== 'schema.json')

const regenerate = 'stale: run `npm run build && node scripts/reference.js`'

test('the table in docs/configuration.md agrees with the settings table', async t => {
  const page = await textOf('docs/configuration.md')
  t.is(withReference(page), page, regenerate)
})

test('the README has a table of eight settings, among them all that are required', async t => {
  const readme = await textOf('README.md')
  t.is(withReference(readme, everydaySettings), readme, regenerate)
  t.is(everydaySettings.length, 8)
  const needed = settingKeys.filter(key => settingOf(key).default === required)
  t.deepEqual(
    needed.filter(key => !everydaySettings.some(one => one === key)),
    []
  )
})

test('the schema for editors agrees with the settings table', async t => {
  t.deepEqual(JSON.parse(await textOf('config/schema.json')), JSON.parse(JSON.stringify(jsonSchema())), regenerate)
})

test('the full sample agrees with the settings table', async t => {
  t.is(await textOf('config/full.yaml'), fullSample(), regenerate)
})

test('the reference has a row for every setting', t => {
  for (const key of settingKeys) t.true(referenceTable().includes(`| \`${key}\`<br>\`${settingOf(key).env}\``), key)
})

test('withReference() refuses a text without the markers', t => {
  t.throws(() => withReference('# Something else'), { message: /markers/ })
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
    t.deepEqual(
      error?.problems.map(problem => problem.key),
      ['platform.clientId']
    )
  })
}

test('the dual sample sets a refresh margin and a spread', async t => {
  const configFile = fileURLToPath(new URL('config/dual.yaml', root))
  const { config } = await loadConfig({ configFile, env: enough, cwd: await tempFolder(t) })
  t.like(config.refresh, { marginSeconds: 120, spreadSeconds: 1500 })
})

test('a settings file written from values gives the same values when it is read', async t => {
  const text = sampleFile({
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
