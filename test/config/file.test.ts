import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { searchPlaces } from '#src/config/file.js'
import { loadConfig } from '#src/config/load.js'
import { defaultCommand } from '../helpers/program.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { enough, linesOf, load, problemsOf } from './given.js'

/** Runs a command in a separate process. Rejects if it fails. */
function runProgram(args: readonly string[], options: { cwd: string; env: Record<string, string> }) {
  const [file = '', ...more] = defaultCommand
  return promisify(execFile)(file, [...more, ...args], options)
}

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
    'a folder with the name of a settings file is ignored',
    { [`${rcFile}.json/inner`]: '', 'platform-auth-server.config.json': '{"port":9000}' },
    9000
  ],
  ['an empty file sets nothing', { [rcFile]: '' }, 8080],
  ['an empty line sets nothing', { [rcFile]: '\n' }, 8080],
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
  { text: 'constructor: 1', key: 'constructor', message: 'is not a setting.' },
  { text: 'log: hunter2', key: 'log', message: 'must be a group with the settings level, pretty, requests.' },
  { text: 'log: false', key: 'log', message: 'must be a group with the settings level, pretty, requests.' },
  { text: 'log: [hunter2]', key: 'log', message: 'must be a group with the settings level, pretty, requests.' },
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
  'k.mjs': ['export const port = 1', /^has no default export\. Export the settings as the default\.$/],
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

/** Runs `config --json` in a process with these files in its working directory. */
async function configIn(t: ExecutionContext, files: Record<string, string>, args: readonly string[] = []) {
  const cwd = await tempFolder(t, files)
  const { stdout } = await runProgram(['config', '--json', ...args], { cwd, env: enough })
  return JSON.parse(stdout)
}

// The meta configuration of cosmiconfig is read from the working directory of the process, so these tests use a
// separate process.
test('the meta configuration of cosmiconfig may add places to search', async t => {
  const meta = '{"cosmiconfig":{"searchPlaces":["settings/{name}.yaml"]}}'
  const files = { '.config/config.json': meta, 'settings/platform-auth-server.yaml': 'port: 9000' }
  const { settings } = await configIn(t, files)
  t.deepEqual(settings.port, { value: 9000, source: 'file settings/platform-auth-server.yaml' })
  const own = { ...files, 'platform-auth-server.config.yaml': 'port: 9001' }
  t.is((await configIn(t, own)).settings.port.value, 9000, 'places of the meta configuration take precedence')
})

test('the meta configuration of cosmiconfig may contain the settings', async t => {
  const { settings } = await configIn(t, { '.config/config.yaml': 'platform-auth-server:\n  port: 9000\n' })
  t.deepEqual(settings.port, { value: 9000, source: 'file .config/config.yaml' })
})

test('a settings file may import another file', async t => {
  const files = {
    'platform-auth-server.config.yaml': '$import: base.yaml\nport: 9001\n',
    'base.yaml': 'port: 9000\nlog: { level: debug }\n'
  }
  const { config } = await load(t, { files })
  t.deepEqual([config.port, config.log.level], [9001, 'debug'])
  const [problem] = await problemsOf(t, { files: { 'platform-auth-server.config.yaml': '$import: base.yaml' } })
  t.regex(problem?.message ?? '', /^cannot be read, because there is no such file\.$/)
})

for (const [place, text, says] of [
  [
    'package.json',
    '{ "hunter2',
    'is not valid JSON, because a name in double quotes or } is expected at line 1, column 3.'
  ],
  [
    '.config/config.json',
    '{ "hunter2": 1, }',
    'is not valid JSON, because a name in double quotes is expected at line 1, column 17.'
  ],
  ['.config/config.yaml', 'hunter2: "', 'is not valid YAML']
] as const) {
  test(`a broken meta configuration is reported with its name: ${place}`, async t => {
    const cwd = await tempFolder(t, { [place]: text })
    const { stderr, code } = await t.throwsAsync<Error & { stderr: string; code: number }>(
      runProgram(['config'], { cwd, env: enough })
    )
    t.is(code, 2)
    t.true(stderr.includes(place), stderr)
    t.true(stderr.includes(says), stderr)
    t.notRegex(stderr, /hunter2|^ +at /m)
  })
}

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
