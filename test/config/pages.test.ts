import { join } from 'node:path'
import test from 'ava'
import { loadConfig } from '#src/config/load.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { enough, load, refuses } from './given.js'

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

const refused: Readonly<Record<string, readonly [yaml: string, problem: string]>> = {
  'a logo that does not exist': ['name: A\n  logo: a.svg', 'branding.logo "a.svg" /a.svg does not exist'],
  'a logo without a name': ['logo: logo.svg', 'branding.logo Set branding.name'],
  'a broken template': ['folder: pages', 'branding.folder "pages" pages/page.html placeholder {{token}}'],
  'a colour without quotation marks': ['color: #1d5fc2', 'branding.color empty "#1d5fc2", quotation marks remove'],
  'the name of a colour': ['color: red', 'branding.color "red" "#1d5fc2"'],
  'a colour with five digits': ['color: "#12345"', 'branding.color "#1d5fc2"'],
  'a name of two lines': ['name: "a\\nb"', 'branding.name 80 characters'],
  'a long name': [`name: ${'a'.repeat(81)}`, 'branding.name 80 characters']
}

for (const [what, [yaml, problem]] of Object.entries(refused)) {
  test(`${what} is refused when the settings are loaded`, t => {
    const files = {
      [settingsFile]: `branding:\n  ${yaml}\n`,
      'logo.svg': svg,
      'pages/page.html': '<!doctype html><html lang="{{lang}}">{{head}}{{content}}{{token}}'
    }
    return refuses(t, { files }, problem)
  })
}

test('a colour in .env needs quotation marks, because # begins a comment', async t => {
  const dotEnv = (color: string) => ({ files: { '.env': `PLATFORM_AUTH_BRANDING_COLOR=${color}\n` } })
  await refuses(t, dotEnv('#15c'), 'branding.color empty "#1d5fc2", quotation marks')
  t.is((await load(t, dotEnv('"#15c"'))).config.branding.color, '#15c')
})
