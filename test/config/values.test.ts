import test from 'ava'
import { checkValue } from '#src/config/check-value.js'
import type { SettingKey } from '#src/config/settings.js'
import { settingOf, writtenValue } from '#src/config/settings.js'
import { readString } from '#src/config/types/value-type.js'
import { assertCases } from '../helpers/case-file.js'
import { load, refuses } from './given.js'

test('each setting accepts these values and refuses the others', t =>
  assertCases(t, 'test/config/values.txt', (input, [title = '']) => {
    const [key, ...inVariable] = title.split(' ') as [SettingKey, ...string[]]
    const value: unknown = JSON.parse(input)
    const given = inVariable.length > 0 ? readString(settingOf(key).type, String(value).trim()) : value
    const checked = checkValue(key, given)
    return 'value' in checked ? JSON.stringify(writtenValue(key, checked.value)) : checked.rejected.join(' ')
  }))

const inFile = (settings: unknown) => ({ files: { 'x.json': JSON.stringify(settings) }, configFile: 'x.json' })

test('a settings file may write a number or a yes-or-no value as a string, as variables do', async t => {
  const written = { port: '8096', logout: { idp: 'yes' }, log: { requests: 'true' }, platform: { timeout: '5' } }
  const { config } = await load(t, inFile(written))
  t.like(config, { port: 8096, logout: { idp: true }, log: { requests: true }, platform: { timeoutSeconds: 5 } })
  await refuses(t, inFile({ port: '80.5' }), 'port 0 65535')
})

test('a folder of static files must exist, and its path becomes absolute', async t => {
  const { config } = await load(t, { flags: { wwwroot: 'pages' }, files: { 'pages/index.html': '' } })
  t.regex(config.wwwroot ?? '', /^\/.*\/pages$/)
  await refuses(t, { flags: { wwwroot: 'pages' } }, 'wwwroot no such folder path')
  await refuses(t, { flags: { wwwroot: 'pages' }, files: { pages: '' } }, 'wwwroot it is a file path')
})

test('a folder wwwroot in the working directory is served by default', async t => {
  const { config, sources } = await load(t, { files: { 'wwwroot/index.html': '' } })
  t.regex(config.wwwroot ?? '', /^\/.*\/wwwroot$/)
  t.is(sources.wwwroot, 'default')
  t.is((await load(t, { files: { wwwroot: 'a file' } })).config.wwwroot, undefined)
})

test('the fallback must be a file of wwwroot', async t => {
  const files = { 'wwwroot/index.html': '', 'wwwroot/app/shell.html': '', 'outside.html': '' }
  for (const fallback of ['index.html', 'app/shell.html']) {
    t.is((await load(t, { flags: { fallback }, files })).config.fallback, fallback)
  }
  await refuses(t, { flags: { fallback: 'app.html' }, files }, 'fallback "app.html", wwwroot no such file index.html')
  const outside = 'app,/index.html,../outside.html,app/../index.html,.env,a\\b.html,a b.html'
  for (const fallback of outside.split(',')) await refuses(t, { flags: { fallback }, files }, 'fallback')
})

test('a wrong wwwroot causes no further errors about its files', t =>
  refuses(t, { flags: { wwwroot: 'pages', fallback: 'index.html' } }, 'wwwroot'))
