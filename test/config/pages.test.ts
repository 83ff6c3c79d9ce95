import { join } from 'node:path'
import test from 'ava'
import { loadConfig } from '#src/config/load.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { enough, load, problemsOf } from './given.js'

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

const refused: Readonly<Record<string, readonly [yaml: string, key: string, message: RegExp]>> = {
  'a logo that does not exist': [
    'name: A\n  logo: a.svg',
    'branding.logo',
    /^cannot be the string "a\.svg", because the file \/.*a\.svg does not exist/
  ],
  'a logo without a name': [
    'logo: logo.svg',
    'branding.logo',
    /^is set without branding\.name, .*\. Set branding\.name\.$/
  ],
  'a broken template': [
    'folder: pages',
    'branding.folder',
    /^cannot be the string "pages", because the file \/.*pages\/page\.html has the unknown placeholder \{\{token\}\}/
  ],
  'a colour without quotation marks': [
    'color: #1d5fc2',
    'branding.color',
    /^is empty\. Set it to a colour such as "#1d5fc2", in quotation marks, or remove the setting\.$/
  ],
  'the name of a colour': [
    'color: red',
    'branding.color',
    /^cannot be the string "red"\. Set it to a colour such as "#1d5fc2"/
  ],
  'a colour with five digits': [
    'color: "#12345"',
    'branding.color',
    /^cannot be the string "#12345"\. Set it to a colour/
  ],
  'a name of two lines': ['name: "a\\nb"', 'branding.name', /Set it to a name of up to 80 characters\.$/],
  'a long name': [`name: ${'a'.repeat(81)}`, 'branding.name', /Set it to a name of up to 80 characters\.$/]
}

for (const [what, [yaml, key, message]] of Object.entries(refused)) {
  test(`${what} is refused when the settings are loaded`, async t => {
    const files = {
      [settingsFile]: `branding:\n  ${yaml}\n`,
      'logo.svg': svg,
      'pages/page.html': '<!doctype html><html lang="{{lang}}">{{head}}{{content}}{{token}}'
    }
    const [problem, ...more] = await problemsOf(t, { files })
    t.deepEqual(more, [])
    t.is(problem?.key, key)
    t.regex(problem?.message ?? '', message)
  })
}

test('a colour in .env needs quotation marks, because # begins a comment', async t => {
  const [problem] = await problemsOf(t, { files: { '.env': 'PLATFORM_AUTH_BRANDING_COLOR=#15c\n' } })
  t.regex(problem?.message ?? '', /^is empty\. Set it to a colour such as "#1d5fc2", in quotation marks/)
  const { config } = await load(t, { files: { '.env': 'PLATFORM_AUTH_BRANDING_COLOR="#15c"\n' } })
  t.is(config.branding.color, '#15c')
})
