import { execFile } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import test from 'ava'
import { ConfigError } from '#src/config/errors.js'
import { searchPlaces } from '#src/config/file.js'
import { loadConfig } from '#src/config/load.js'
import { defaultCommand } from '../helpers/program.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { accepts, areProblems, enough, load, problemsOf, refuses } from './given.js'

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

test('if there are two settings files, the second is not read and gets a warning', async t => {
  const files = { [`${rcFile}.json`]: '{"port":9000}', 'platform-auth-server.config.yaml': 'port: 9001' }
  const warning = `platform-auth-server.config.yaml not read ${rcFile}.json precedence Remove`
  t.is((await accepts(t, { files }, warning)).config.port, 9000)
})

test('a package.json that is malformed or has no settings is ignored', async t => {
  for (const text of ['{"name":"platform-auth-server"}', '{"platform-auth-server":', '[]', 'null'])
    t.is((await accepts(t, { files: { 'package.json': text } })).file, undefined, text)
})

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

const logGroup = 'log group level, format, requests, trustForwardedFor'

for (const [text, problem] of [
  ['prot: 1', 'prot not a setting port?'],
  ['clientId: x', 'clientId not a setting platform.clientId?'],
  ['sesion: { secret: x }', 'sesion not a setting session?'],
  ['session: { secrt: x }', 'session.secrt not a setting session.secret?'],
  ['session.secret: x', 'session.secret nested secret group session'],
  ['{"__proto__": {"port": 1}}', '__proto__ not a setting.'],
  ['$import: base.yaml', '$import not a setting.'],
  ['constructor: 1', 'constructor not a setting.'],
  ['log: hunter2', logGroup],
  ['log: false', logGroup],
  ['log: [hunter2]', logGroup],
  ['hunter2', 'settings mapping'],
  ['- hunter2', 'settings mapping']
] as const) {
  test(`a settings file with the content ${text} is refused`, async t => {
    const problems = await problemsOf(t, { files: { [rcFile]: text } })
    areProblems(t, problems, [`${problem} file ${rcFile}`])
    t.false(JSON.stringify(problems).includes('hunter2'))
  })
}

const broken: readonly (readonly [name: string, text: string, says: string])[] = [
  ['a.yaml', 'port: 1\nsession: { secret: "hunter2', 'YAML unexpected end column 1'],
  ['b.yaml', 'session: { secret: *hunter2 }', 'YAML alias line 1, column'],
  ['c.yaml', 'secret: !hunter2 x', 'YAML tag line 1, column'],
  ['c2.yaml', 'secret: !hunter2%ZZ x', 'YAML tag characters line 1, column'],
  ['d.yaml', 'secret: hunter2: hunter2', 'YAML line 1'],
  ['noExtension', 'secret: "hunter2', 'YAML'],
  ['d2.yaml', 'secret: hunter2\n---\nport: 1', 'YAML single document'],
  ['e.json', '{\n"secret": hunter2 }', 'JSON value expected line 2, column 11'],
  ['f.json', '{"secret": "hunter2",}', 'JSON name double quotes line 1, column 22'],
  ['g.json', '{"secret": "hunter2', 'JSON value expected line 1, column 12'],
  ['g1.json', '// hunter2\n{}\n', 'comments JSON line 1, column 1 YAML'],
  ['g5.json', '\uFEFF// hunter2\n{}\n', 'comments'],
  ['g2.json', '{ "a": "//", /* hunter2\n */ "port": 9000 }', 'comments'],
  ['g4.json', '// hunter2\n{ "port": hunter2 }', 'JSON value expected line 1, column 1'],
  ['g3.json', '{\n"port": 9000,\n"secret":\nhunter2 }', 'JSON value expected line 4, column 1'],
  ['h.mjs', '\nexport default { secret: hunter2 }', 'throws ReferenceError line 2'],
  ['i.cjs', '\nmodule.exports = { secret: hunter2 hunter2 }', 'throws SyntaxError line 2'],
  ['i0.mjs', '\nexport default { secret: hunter2 hunter2 }', 'throws SyntaxError. file line run: node /i0.mjs'],
  ['i1.mjs', '\nthrow new Error("set TENANT first")', 'throws Error "set TENANT first" line 2'],
  ['j.mjs', 'throw "hunter2"', 'throws not an error'],
  ['j1.mjs', 'import "not-there"; export default { secret: "hunter2" }', 'no module "not-there"'],
  ['j2.mjs', 'import "./not-there.js"; export default { secret: "hunter2" }', 'no module /not-there.js"'],
  ['j3.cjs', 'require("not-there")', 'no module "not-there"'],
  ['k.mjs', 'export const port = 1', 'no default export exports port.'],
  ['l.ts', 'export default { port: 1 }', 'TypeScript Compile l.mjs'],
  ['m.toml', 'secret = "hunter2"', 'TOML YAML m.yaml'],
  ['n.txt', 'port = 1', 'extension .yaml']
]

for (const [name, text, says] of broken) {
  test(`the error for an unusable settings file contains its name but not its content: ${name}`, async t => {
    const problems = await problemsOf(t, { files: { [name]: text }, configFile: name, env: { PLATFORM_CLIENT_ID: '' } })
    // The missing client id is not reported, because the unusable file may contain it.
    areProblems(t, problems, [`${name} ${says}`])
    t.false(JSON.stringify(problems).includes('hunter2'))
  })
}

test('a settings file that is given by name must exist and must not be a folder', async t => {
  await refuses(t, { configFile: 'no.yaml' }, 'no.yaml --config no such file')
  await refuses(t, { configFile: '.' }, '. --config folder')
})

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

// A settings file that exists but is not read may have been meant to contain the access list.
const unread: readonly (readonly [what: string, path: string, content: string, says: string])[] = [
  [
    'a folder, which Docker creates for a missing file',
    'platform-auth-server.config.yaml/inner',
    '',
    'cannot be read folder'
  ],
  ['a script that throws', `${rcFile}.cjs`, 'require("node:fs").readFileSync("/not/there")', 'no such file'],
  ['an empty file', rcFile, '', 'empty'],
  ['a file with only white space', `${rcFile}.json`, ' \n', 'empty'],
  ['an empty script', 'platform-auth-server.config.cjs', '', 'empty'],
  [
    'a duplicate key in JSON',
    `${rcFile}.json`,
    '{"access":{"allow":["a@b.example"]},\n "access":{}}',
    '"access" twice line 2, column 2 Merge'
  ],
  [
    'a duplicate key in an object of JSON, spelt with an escape sequence',
    `${rcFile}.json`,
    '{"access":{"allow":"a@b.example","\\u0061llow":null}}',
    '"access.allow" twice line 1, column 34 Merge'
  ],
  [
    'a duplicate key in package.json',
    'package.json',
    '{"platform-auth-server":{"port":1},"platform-auth-server":{}}',
    '"platform-auth-server" twice line 1, column 36 Merge'
  ],
  [
    'a duplicate key in YAML',
    rcFile,
    'access: { allow: a@b.example }\naccess: {}\n',
    'YAML duplicated key line 2, column 1'
  ]
]

for (const [what, path, content, says] of unread) {
  test(`a settings file that exists must be readable, even if the next one is valid: ${what}`, async t => {
    const key = path.replace('/inner', '')
    const next = { '.config/platform-auth-serverrc': 'port: 9000' }
    await refuses(t, { files: { [path]: content, ...next } }, `${key} file ${key} ${says}`)
  })
}

test('a dangling symlink with the name of a settings file is refused, wherever it is', async t => {
  const cwd = await tempFolder(t, { 'config/keep': '' })
  const name = 'config/platform-auth-server.config.yaml'
  await symlink('/not/there', join(cwd, name))
  const error = await t.throwsAsync(loadConfig({ cwd, env: enough }), { instanceOf: ConfigError })
  areProblems(t, error?.problems, [`${name} symlink does not exist`])
})

test('a user without a home folder can start the program with a settings file in YAML', async t => {
  const cwd = await tempFolder(t, { 'platform-auth-server.config.yaml': 'port: 9000\n' })
  const noHome = 'import os from "node:os"; os.homedir = () => { throw new Error("uv_os_homedir returned ENOENT") }'
  const [file = '', ...args] = defaultCommand
  const env = { ...enough, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(noHome)}` }
  const { stdout } = await promisify(execFile)(file, [...args, 'config', '--json'], { cwd, env })
  t.deepEqual(JSON.parse(stdout).settings.port, { value: 9000, source: 'file platform-auth-server.config.yaml' })
})

test('a settings file that contains only comments sets nothing and gets a warning', async t => {
  const { config } = await accepts(t, { files: { [rcFile]: '# port: 9000\n' } }, `${rcFile} only comments`)
  t.is(config.port, 8080)
})

for (const [name, why] of [
  ['platform-auth-server.yaml', 'Rename platform-auth-server.config.yaml --config platform-auth-server.yaml'],
  [
    'config/platform-auth-server.json',
    'Rename platform-auth-server.config.json --config config/platform-auth-server.json'
  ],
  ['platform-auth-server.config.ts', 'TypeScript Compile platform-auth-server.config.mjs'],
  ['platform-auth-server.config.cts', 'TypeScript Compile platform-auth-server.config.cjs'],
  ['.platform-auth-serverrc.toml', 'TOML YAML platform-auth-server.config.yaml']
] as const) {
  test(`a settings file that is not searched for gets a warning with advice: ${name}`, async t => {
    const warning = `${name} working directory not read ${why}`
    const { config, file } = await accepts(t, { files: { [name]: '{"port":1005}' } }, warning)
    t.is(config.port, 8080)
    t.is(file, undefined)
  })
}

test('other files with a similar name get no warning', async t => {
  const names = ['platform-auth-server-1.0.0.tgz', 'platform-auth-server.log', 'platform-auth-server.md']
  await accepts(t, { files: Object.fromEntries(names.map(name => [name, ''])) })
})
