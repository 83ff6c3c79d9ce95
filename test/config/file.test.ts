import { execFile } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import test from 'ava'
import { searchPlaces } from '#src/config/file.js'
import { loadConfig } from '#src/config/load.js'
import { defaultCommand } from '../helpers/program.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { enough, linesOf, load, problemsOf } from './given.js'

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

test('if there are two settings files, the second is not read and gets a warning', async t => {
  const files = { '.platform-auth-serverrc.json': '{"port":9000}', 'platform-auth-server.config.yaml': 'port: 9001' }
  const { config, warnings } = await load(t, { files })
  t.is(config.port, 9000)
  t.deepEqual(linesOf(warnings), [
    'platform-auth-server.config.yaml is not read, because .platform-auth-serverrc.json has precedence. Remove one of the two.'
  ])
})

test('a package.json that is malformed or has no settings is ignored', async t => {
  for (const text of ['{"name":"platform-auth-server"}', '{"platform-auth-server":', '[]', 'null']) {
    const { file, warnings } = await load(t, { files: { 'package.json': text } })
    t.is(file, undefined, text)
    t.deepEqual(warnings, [], text)
  }
})

const rcFile = '.platform-auth-serverrc'
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
  ['a comment sets nothing', { [rcFile]: '# port: 9000\n' }, 8080],
  ['a group with only a comment sets nothing', { [rcFile]: 'session:\n  # secret:\n' }, 8080]
]

for (const [what, content, port] of files) {
  test(`settings files: ${what}`, async t => t.is((await load(t, { files: content })).config.port, port))
}

test('a list of scopes may be an array or a string', async t => {
  for (const scopes of ['[a:b, "c"]', 'a:b  c', '"a:b\\n c"']) {
    const { config } = await load(t, { files: { '.platform-auth-serverrc': `platform: { scopes: ${scopes} }` } })
    t.deepEqual(config.platform.scopes, ['a:b', 'c'], scopes)
  }
})

const misnamed = [
  { text: 'prot: 1', key: 'prot', message: 'is not a setting. Did you mean port?' },
  { text: 'clientId: x', key: 'clientId', message: 'is not a setting. Did you mean platform.clientId?' },
  { text: 'sesion: { secret: x }', key: 'sesion', message: 'is not a setting. Did you mean session?' },
  { text: 'session: { secrt: x }', key: 'session.secrt', message: 'is not a setting. Did you mean session.secret?' },
  {
    text: 'session.secret: x',
    key: 'session.secret',
    message: 'must be nested. Write secret inside the group session.'
  },
  { text: '{"__proto__": {"port": 1}}', key: '__proto__', message: 'is not a setting.' },
  { text: '$import: base.yaml', key: '$import', message: 'is not a setting.' },
  { text: 'constructor: 1', key: 'constructor', message: 'is not a setting.' },
  {
    text: 'log: hunter2',
    key: 'log',
    message: 'must be a group with the settings level, format, requests, trustForwardedFor.'
  },
  {
    text: 'log: false',
    key: 'log',
    message: 'must be a group with the settings level, format, requests, trustForwardedFor.'
  },
  {
    text: 'log: [hunter2]',
    key: 'log',
    message: 'must be a group with the settings level, format, requests, trustForwardedFor.'
  },
  { text: 'hunter2', key: 'settings', message: 'must be a mapping of settings to values.' },
  { text: '- hunter2', key: 'settings', message: 'must be a mapping of settings to values.' }
]

for (const { text, key, message } of misnamed) {
  test(`a settings file with the content ${text} is refused`, async t => {
    const problems = await problemsOf(t, { files: { '.platform-auth-serverrc': text } })
    t.deepEqual(problems, [{ key, source: 'file .platform-auth-serverrc', message }])
  })
}

const broken: Readonly<Record<string, readonly [text: string, says: RegExp]>> = {
  'a.yaml': [
    'port: 1\nsession: { secret: "hunter2',
    /YAML, because the parser reports "unexpected end of the stream .*" at line \d, column 1\.$/
  ],
  'b.yaml': [
    'session: { secret: *hunter2 }',
    /YAML, because the parser reports "unidentified alias" at line 1, column \d+\.$/
  ],
  'c.yaml': ['secret: !hunter2 x', /YAML, because the parser reports "unknown tag" at line 1, column \d+\.$/],
  'c2.yaml': [
    'secret: !hunter2%ZZ x',
    /YAML, because the parser reports "tag name cannot contain such characters" at line 1, column \d+\.$/
  ],
  'd.yaml': ['secret: hunter2: hunter2', /YAML, because the parser reports ".*" at line 1/],
  noExtension: ['secret: "hunter2', /YAML/],
  'd2.yaml': [
    'secret: hunter2\n---\nport: 1',
    /^is not valid YAML, because the parser reports "expected a single document in the stream, but found more"\.$/
  ],
  'e.json': ['{\n"secret": hunter2 }', /^is not valid JSON, because a value is expected at line 2, column 11\.$/],
  'f.json': [
    '{"secret": "hunter2",}',
    /^is not valid JSON, because a name in double quotes is expected at line 1, column 22\.$/
  ],
  'g.json': ['{"secret": "hunter2', /^is not valid JSON, because a value is expected at line 1, column 12\.$/],
  'g1.json': [
    '// hunter2\n{}\n',
    /^contains comments, which JSON does not allow, at line 1, column 1\. Use YAML \(\.yaml\) for comments\.$/
  ],
  'g5.json': ['\uFEFF// hunter2\n{}\n', /^contains comments/],
  'g2.json': ['{ "a": "//", /* hunter2\n */ "port": 9000 }', /^contains comments/],
  'g4.json': [
    '// hunter2\n{ "port": hunter2 }',
    /^is not valid JSON, because a value is expected at line 1, column 1\.$/
  ],
  'g3.json': [
    '{\n"port": 9000,\n"secret":\nhunter2 }',
    /^is not valid JSON, because a value is expected at line 4, column 1\.$/
  ],
  'h.mjs': ['\nexport default { secret: hunter2 }', /^cannot be run, because it throws ReferenceError at line 2\.$/],
  'i.cjs': [
    '\nmodule.exports = { secret: hunter2 hunter2 }',
    /^cannot be run, because it throws SyntaxError at line 2\.$/
  ],
  'i1.mjs': [
    '\nthrow new Error("set TENANT first")',
    /^cannot be run, because it throws Error "set TENANT first" at line 2\.$/
  ],
  'j.mjs': ['throw "hunter2"', /^cannot be run, because it throws a value that is not an error\.$/],
  'j1.mjs': [
    'import "not-there"; export default { secret: "hunter2" }',
    /^cannot be run, because there is no module "not-there"\.$/
  ],
  'j2.mjs': [
    'import "./not-there.js"; export default { secret: "hunter2" }',
    /^cannot be run, because there is no module "\/.*\/not-there.js"\.$/
  ],
  'j3.cjs': ['require("not-there")', /^cannot be run, because there is no module "not-there"\.$/],
  'k.mjs': [
    'export const port = 1',
    /^has no default export\. It exports port\. Export the settings as the default\.$/
  ],
  'l.ts': [
    'export default { port: 1 }',
    /^cannot be read, because TypeScript is not supported\. Compile it or remove its types, and name the result l\.mjs\.$/
  ],
  'm.toml': [
    'secret = "hunter2"',
    /^cannot be read, because TOML is not supported\. Write the same settings in YAML, in m\.yaml\.$/
  ],
  'n.txt': ['port = 1', /^has an unsupported file extension\. Use \.yaml/]
}

for (const [name, [text, says]] of Object.entries(broken)) {
  test(`the error for an unusable settings file contains its name but not its content: ${name}`, async t => {
    const problems = await problemsOf(t, { files: { [name]: text }, configFile: name, env: { PLATFORM_CLIENT_ID: '' } })
    // The missing client id is not reported, because the unusable file may contain it.
    t.is(problems.length, 1)
    t.is(problems[0]?.key, name)
    t.regex(problems[0]?.message ?? '', says)
    t.notRegex(problems[0]?.message ?? '', /hunter2/)
  })
}

test('a settings file that is given by name must exist and must not be a folder', async t => {
  const [missing] = await problemsOf(t, { configFile: 'no.yaml' })
  t.deepEqual(missing, {
    key: 'no.yaml',
    source: 'flag --config',
    message: 'cannot be read, because there is no such file.'
  })
  const [isFolder] = await problemsOf(t, { configFile: '.' })
  t.is(isFolder?.message, 'cannot be read, because it is a folder.')
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

test('an error of a settings script is reported even if the next settings file is valid', async t => {
  const files = {
    '.platform-auth-serverrc.cjs': 'require("node:fs").readFileSync("/not/there")',
    'platform-auth-server.config.json': '{"port":9000}'
  }
  const [problem] = await problemsOf(t, { files })
  t.deepEqual(problem, {
    key: '.platform-auth-serverrc.cjs',
    source: 'file .platform-auth-serverrc.cjs',
    message: 'cannot be read, because there is no such file.'
  })
})

// A settings file that exists but is not read may have been meant to contain the access list.
const unread: Readonly<Record<string, readonly [files: Record<string, string>, message: string]>> = {
  'a folder, which Docker creates for a missing file': [
    { 'platform-auth-server.config.yaml/inner': '' },
    'cannot be read, because it is a folder.'
  ],
  'an empty file': [{ [rcFile]: '' }, 'is empty. Write settings into it, or remove it.'],
  'a file with only white space': [{ [`${rcFile}.json`]: ' \n' }, 'is empty. Write settings into it, or remove it.'],
  'an empty script': [{ 'platform-auth-server.config.cjs': '' }, 'is empty. Write settings into it, or remove it.'],
  'a duplicate key in JSON': [
    { [`${rcFile}.json`]: '{"access":{"allow":["a@b.example"]},\n "access":{}}' },
    'contains "access" twice, the second time at line 2, column 2. Merge the two.'
  ],
  'a duplicate key in an object of JSON, spelt with an escape sequence': [
    { [`${rcFile}.json`]: '{"access":{"allow":"a@b.example","\\u0061llow":null}}' },
    'contains "access.allow" twice, the second time at line 1, column 34. Merge the two.'
  ],
  'a duplicate key in package.json': [
    { 'package.json': '{"platform-auth-server":{"port":1},"platform-auth-server":{}}' },
    'contains "platform-auth-server" twice, the second time at line 1, column 36. Merge the two.'
  ],
  'a duplicate key in YAML': [
    { [rcFile]: 'access: { allow: a@b.example }\naccess: {}\n' },
    'is not valid YAML, because the parser reports "duplicated mapping key" at line 2, column 1.'
  ]
}

for (const [what, [content, message]] of Object.entries(unread)) {
  test(`a settings file that exists must be readable: ${what}`, async t => {
    const key = Object.keys(content)
      .map(path => path.replace('/inner', ''))
      .join()
    const next = { '.config/platform-auth-serverrc': 'port: 9000' }
    t.deepEqual(await problemsOf(t, { files: { ...content, ...next } }), [{ key, source: `file ${key}`, message }])
  })
}

test('a dangling symlink with the name of a settings file is refused, wherever it is', async t => {
  const cwd = await tempFolder(t, { 'config/keep': '' })
  await symlink('/not/there', join(cwd, 'config/platform-auth-server.config.yaml'))
  const error = await t.throwsAsync(loadConfig({ cwd, env: enough }))
  t.regex(
    error?.message ?? '',
    /config\.yaml\) cannot be read, because it is a symlink to a file that does not exist\./
  )
})

test('a user without a home folder can start the program with a settings file in YAML', async t => {
  const cwd = await tempFolder(t, { 'platform-auth-server.config.yaml': 'port: 9000\n' })
  const noHome = 'import os from "node:os"; os.homedir = () => { throw new Error("uv_os_homedir returned ENOENT") }'
  const [file = '', ...args] = defaultCommand
  const env = { ...enough, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(noHome)}` }
  const { stdout } = await promisify(execFile)(file, [...args, 'config', '--json'], { cwd, env })
  t.deepEqual(JSON.parse(stdout).settings.port, { value: 9000, source: 'file platform-auth-server.config.yaml' })
})

test('a settings file that contains only comments gets a warning', async t => {
  const { config, warnings } = await load(t, { files: { [rcFile]: '# port: 9000\n' } })
  t.is(config.port, 8080)
  t.deepEqual(linesOf(warnings), [`${rcFile} contains only comments, so it sets nothing.`])
})

const noSuchName = 'it does not have the name of a settings file. Rename it to platform-auth-server.config'
for (const [name, why] of [
  ['platform-auth-server.yaml', `${noSuchName}.yaml, or name it with --config platform-auth-server.yaml.`],
  [
    'config/platform-auth-server.json',
    `${noSuchName}.json, or name it with --config config/platform-auth-server.json.`
  ],
  [
    'platform-auth-server.config.ts',
    'TypeScript is not supported. Compile it or remove its types, and name the result platform-auth-server.config.mjs.'
  ],
  [
    'platform-auth-server.config.cts',
    'TypeScript is not supported. Compile it or remove its types, and name the result platform-auth-server.config.cjs.'
  ],
  [
    '.platform-auth-serverrc.toml',
    'TOML is not supported. Write the same settings in YAML, in platform-auth-server.config.yaml.'
  ]
] as const) {
  test(`a settings file that is not searched for gets a warning with advice: ${name}`, async t => {
    const { config, file, warnings } = await load(t, { files: { [name]: '{"port":1005}' } })
    t.is(config.port, 8080)
    t.is(file, undefined)
    t.deepEqual(warnings, [{ key: name, source: 'working directory', message: `is not read, because ${why}` }])
  })
}

test('other files with a similar name get no warning', async t => {
  const files = { 'platform-auth-server-1.0.0.tgz': '', 'platform-auth-server.log': '', 'platform-auth-server.md': '' }
  t.deepEqual((await load(t, { files })).warnings, [])
})
