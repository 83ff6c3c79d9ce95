import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { loadConfig } from '#src/config/load.js'
import { searchPlaces } from '#src/config/sources/search-places.js'
import { defaultCommand } from '../helpers/program.js'
import { runCommand } from '../helpers/run-command.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { accepts, enough, load } from './given.js'
import { testSituations } from './messages.js'

/** The same two settings in the format of this file name. */
function textFor(place: string): string {
  if (place === 'package.json') return '{"name":"x","platform-auth-server":{"port":9000,"log":{"level":"debug"}}}'
  if (place.endsWith('.json')) return '{"port":9000,"log":{"level":"debug"}}'
  if (place.endsWith('.mjs')) return 'export default { port: 9000, log: { level: "debug" } }'
  if (/\.c?js$/.test(place)) return 'module.exports = { port: 9000, log: { level: "debug" } }'
  return 'port: 9000\nlog:\n  level: debug\n'
}

for (const place of searchPlaces) {
  test(`settings are read from ${place}`, async t => {
    const cwd = await tempFolder(t, { [place]: textFor(place) })
    const { config, sources, file } = await loadConfig({ cwd, env: enough })
    t.is(config.port, 9000)
    t.is(config.log.level, 'debug')
    t.is(sources['log.level'], `file ${place}${place === 'package.json' ? ', key platform-auth-server' : ''}`)
    t.is(file, join(cwd, place))
  })
}

test('all documented file names are searched', t => {
  const documented = [
    '.platform-auth-serverrc',
    '.platform-auth-serverrc.json',
    '.platform-auth-serverrc.yaml',
    '.platform-auth-serverrc.js',
    'platform-auth-server.config.js',
    'platform-auth-server.config.mjs',
    'platform-auth-server.config.cjs',
    'platform-auth-server.config.yaml',
    'platform-auth-server.config.json'
  ]
  for (const place of ['package.json', ...documented.flatMap(name => [name, `config/${name}`, `.config/${name}`])]) {
    t.true(searchPlaces.includes(place), place)
  }
})

test('folders above the working directory are not searched', async t => {
  const above = await tempFolder(t, { '.platform-auth-serverrc.json': '{"port":9000}', 'inner/keep': '' })
  const { config } = await loadConfig({ cwd: join(above, 'inner'), env: enough })
  t.is(config.port, 8080)
})

test('a settings script that was compiled to CommonJS is read', async t => {
  const marked = 'Object.defineProperty(exports, "__esModule", { value: true }); '
  for (const text of [`${marked}exports.default = { port: 9000 }`, 'exports.default = { port: 9000 }']) {
    const name = 'platform-auth-server.config.cjs'
    t.is((await load(t, { files: { [name]: text } })).config.port, 9000)
  }
})

test('a settings file that is given by name is the only one read', async t => {
  const files = { 'own.yaml': 'port: 9001', '.platform-auth-serverrc.json': '{"port":9000,"log":{"level":"debug"}}' }
  const { config, sources } = await load(t, { files, configFile: 'own.yaml' })
  t.is(config.port, 9001)
  t.is(config.log.level, 'info')
  t.is(sources.port, 'file own.yaml')
})

const rcFile = '.platform-auth-serverrc'
const yamlFile = 'platform-auth-server.config.yaml'

const files: readonly (readonly [what: string, files: Record<string, string>, port: number])[] = [
  [
    'a file with the extension .js may be an ES module',
    { 'package.json': '{"type":"module"}', 'platform-auth-server.config.js': 'export default { port: 9000 }' },
    9000
  ],
  [
    'a JSON file may begin with a byte order mark and contain $schema',
    { [`${rcFile}.json`]: '\uFEFF{"$schema":"./schema.json","port":9000}' },
    9000
  ],
  [
    'a file of another program is not read',
    { '.config/config.json': '{"cosmiconfig":{"searchPlaces":["other.yaml"]}}', 'other.yaml': 'port: 9000' },
    8080
  ],
  [
    'the same name in two different objects is no duplicate',
    { [`${rcFile}.json`]: '{"log":{"level":"info"},"port":9000}' },
    9000
  ],
  [
    'npm reports a duplicate in the remaining package.json',
    { 'package.json': '{"a":1,"a":2,"platform-auth-server":{"port":9000}}' },
    9000
  ],
  ['a group with only a comment sets nothing', { [rcFile]: 'session:\n  # secret:\n' }, 8080]
]

for (const [what, content, port] of files) {
  test(`settings files: ${what}`, async t => t.is((await load(t, { files: content })).config.port, port))
}

test('a list of scopes may be an array or a string', async t => {
  for (const scopes of ['[a:b, "c"]', 'a:b  c', '"a:b\\n c"']) {
    const { config } = await load(t, { files: { [rcFile]: `platform: { scopes: ${scopes} }` } })
    t.deepEqual(config.platform.scopes, ['a:b', 'c'], scopes)
  }
})

testSituations('settings-file')

for (const [text, port] of [
  ['{"name":"platform-auth-server"}', 8080],
  ['[]', 8080],
  ['null', 8080],
  // As Windows PowerShell 5 writes it.
  ['\uFEFF{"platform-auth-server":{"port":9000}}', 9000]
] as const) {
  test(`the package.json ${text} gives port ${port}, without a warning`, async t => {
    const { config, file } = await accepts(t, { files: { 'package.json': text } })
    t.deepEqual([config.port, file === undefined], [port, port === 8080])
  })
}

// cosmiconfig reads its own options from these files. They could replace the search places, and so hide the access list.
const foreign = {
  '.config/config.cjs': 'globalThis.ran = true; throw new Error("hunter2")',
  'package.json': '{"cosmiconfig":{"searchPlaces":["other.yaml"]}}',
  'other.yaml': 'port: 9001',
  [yamlFile]: 'port: 9000'
}
const settingsModule = JSON.stringify(new URL('../../dist/config/load.js', import.meta.url).href)
const loadPort = `import(${settingsModule}).then(async ({ loadConfig }) => {
  const { config } = await loadConfig({ cwd: process.cwd(), env: ${JSON.stringify(enough)} })
  return { port: config.port, ran: globalThis.ran === true, cwd: process.cwd() }
})`

const print = 'found => console.log(JSON.stringify(found))'
const post = JSON.stringify(`${loadPort}.then(found => require('worker_threads').parentPort.postMessage(found))`)
for (const [where, code] of Object.entries({
  '': `${loadPort}.then(${print})`,
  ' in a worker': `new (require('worker_threads').Worker)(${post}, { eval: true }).on('message', ${print})`
})) {
  test(`options of cosmiconfig in the working directory are neither read nor run${where}`, async t => {
    const cwd = await tempFolder(t, foreign)
    const { stdout } = await runCommand([process.execPath, '-e', code], { cwd })
    t.deepEqual(JSON.parse(stdout), { port: 9000, ran: false, cwd: await realpath(cwd) })
  })
}

test('a package.json that is given by name is accepted with and without settings', async t => {
  const configFile = 'other/package.json'
  for (const [text, port] of [
    ['{"name":"x","platform-auth-server":{"port":9000}}', 9000],
    ['{"name":"x"}', 8080],
    ['[]', 8080],
    ['null', 8080]
  ] as const) {
    t.is((await load(t, { files: { [configFile]: text }, configFile })).config.port, port, text)
  }
})

test('a user without a home folder can start the program with a settings file in YAML', async t => {
  const cwd = await tempFolder(t, { 'platform-auth-server.config.yaml': 'port: 9000\n' })
  const noHome = 'import os from "node:os"; os.homedir = () => { throw new Error("uv_os_homedir returned ENOENT") }'
  const env = { ...enough, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(noHome)}` }
  const { stdout } = await runCommand([...defaultCommand, 'config', '--json'], { cwd, env })
  t.deepEqual(JSON.parse(stdout).settings.port, { value: 9000, source: 'file platform-auth-server.config.yaml' })
})
