import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { settingsText } from '#src/cli/init/files.js'
import { resolveSettings } from '#src/config/load.js'
import { type Config, required, settingKeys, settingOf } from '#src/config/settings.js'
import type { DeepPartial } from '../helpers/config.js'
import { readText } from '../helpers/repository.js'
import { runCommand } from '../helpers/run-command.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { enough, keysOf, load, problemsOf } from './given.js'

const root = new URL('../../', import.meta.url)

test('the README, docs/reference/configuration.md, config/ and the chart agree with the settings table', async t => {
  const { status, stderr } = await runCommand([process.execPath, 'scripts/reference.js', '--check'], { cwd: root })
  t.deepEqual({ status, stderr }, { status: 0, stderr: '' })
})

test('the page of APS and the overview of the providers have the variables of all required settings', t => {
  const page = ['aps', 'README'].map(name => readText(`docs/reference/providers/${name}.md`)).join()
  for (const { env, default: byDefault } of settingKeys.map(settingOf))
    if (byDefault === required) t.true(page.includes(`${env}=`) || page.includes(`\`${env}\``), env)
})

/** The documented samples, with settings that each of them has. */
const documented: Readonly<Record<string, DeepPartial<Config>>> = {
  'dual.yaml': { mode: 'dual', refresh: { beforeExpirySeconds: 120, jitterSeconds: 1500 } },
  'full.yaml': { mode: 'dual' },
  'issuer.yaml': { platform: { issuer: 'https://login.example.com/tenant' } },
  'minimal.yaml': { mode: 'single' },
  'single.yaml': { mode: 'single' }
}

test('config/ contains exactly the documented samples', async t => {
  const files = await readdir(new URL('config/', root))
  t.deepEqual(files.toSorted(), [...Object.keys(documented), 'schema.json'].toSorted())
})

for (const [sample, settings] of Object.entries(documented)) {
  const configFile = fileURLToPath(new URL(`config/${sample}`, root))
  const withoutCallbackUrl = { PLATFORM_CALLBACK_URL: undefined }

  test(`the sample ${sample} is valid once the secrets and the client id are given`, async t => {
    const { config, warnings } = await load(t, { configFile, env: withoutCallbackUrl })
    t.deepEqual(warnings, [])
    t.like(config, settings)
  })

  test(`the sample ${sample} is refused until its placeholder is replaced`, async t => {
    const env = { ...withoutCallbackUrl, PLATFORM_CLIENT_ID: undefined }
    t.deepEqual(keysOf(await problemsOf(t, { configFile, env })), ['platform.clientId'])
  })
}

test('a settings file that init writes gives the same values when it is read', async t => {
  const chosen = {
    mode: 'dual',
    port: 80,
    host: '::',
    'session.cookieName': 'yes',
    'platform.clientId': '#a"b',
    'platform.clientKeyId': '0xABC',
    'platform.publicTokenScopes': ['viewables:read'],
    'platform.pkce': false,
    'platform.revocationEndpoint': 'none'
  } as const
  const cwd = await tempFolder(t, { 'platform-auth-server.config.yaml': settingsText(chosen) })
  const { values, problems } = await resolveSettings({ cwd, env: { ...enough, PLATFORM_CLIENT_ID: undefined } })
  t.deepEqual(problems, [])
  t.like(values, chosen)
})
