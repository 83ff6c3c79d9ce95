import { join } from 'node:path'
import test from 'ava'
import { loadConfig } from '#src/config/load.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { enough, load } from './given.js'
import { testSituations } from './messages.js'

const settingsFile = 'platform-auth-server.config.yaml'
const svg = '<svg xmlns="http://www.w3.org/2000/svg"/>'

test('the paths of the logo and the folder become absolute', async t => {
  const cwd = await tempFolder(t, {
    [settingsFile]: 'branding:\n  name: Smith & Sons\n  logo: logo.svg\n  color: "#15c"\n  folder: pages\n',
    'logo.svg': svg,
    'pages/de.json': '{}'
  })
  const { config, warnings } = await loadConfig({ cwd, env: enough })
  t.deepEqual(config.branding, {
    name: 'Smith & Sons',
    logo: join(cwd, 'logo.svg'),
    color: '#15c',
    folder: join(cwd, 'pages')
  })
  t.deepEqual(warnings, [])
})

testSituations('branding')

test('a colour in .env may be in quotation marks', async t => {
  const files = { '.env': 'PLATFORM_AUTH_BRANDING_COLOR="#15c"\n' }
  t.is((await load(t, { files })).config.branding.color, '#15c')
})
