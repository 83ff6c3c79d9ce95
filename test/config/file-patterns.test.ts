import test from 'ava'
import fc from 'fast-check'
import { filePatterns, isProtectedFile, isProtectedPath } from '#src/config/types/protected-files.js'
import { accepts, load, refuses, type Situation } from './given.js'
import { testSituations } from './messages.js'

const VARIABLE = 'PLATFORM_AUTH_ACCESS_FILES'

function patternsOf(text: string) {
  const parsed = filePatterns.parse(text)
  if ('value' in parsed) return parsed.value
  throw new Error(JSON.stringify(parsed))
}

const decisions: readonly (readonly [patterns: string, locked: readonly string[], open: readonly string[]])[] = [
  ['/**', ['index.html', 'a/b/c.js', '..x', 'api/auth/x', 'caf\u00e9.txt'], []],
  ['!/welcome.html /**', ['index.html', 'Welcome.html', 'a/welcome.html'], ['welcome.html', 'welcome.html.gz']],
  ['!/Reports/x /reports/**', ['REPORTS/a.html', 'reports/x', 'report\u017f/a'], ['Reports/x']],
  ['/Caf%C3%89', ['caf\u00e9', 'CAF\u00c9.html'], ['cafe']],
  ['!/welcome /**', ['welcome/index.html', 'welcome/x'], ['welcome.html', 'welcome.html.br', 'welcome']],
  ['/reports/**', ['reports/a.html', 'reports/index.html', 'reports.html', 'reports'], ['reports2/a', 'a/reports/b']],
  ['!/reports/public/** /reports/**', ['reports/a', 'reports/publicx'], ['reports/public/a', 'a']],
  [
    '/reports/ /data.json',
    ['reports/a', 'reports.html', 'Reports/x/y', 'data.json', 'data.json.gz'],
    ['reports2', 'data']
  ],
  ['/Reports', ['reports', 'REPORTS.html', 'reports/index.html', 'reports/a/b'], ['reports2/a', 'a/reports']],
  ['/about', ['about.html', 'about', 'about.html.gz', 'about.gz', 'about/index.html'], ['about.htm']],
  ['/', ['index.html', 'index.html.br', 'a/index.html', 'a'], []],
  ['!/* /**', ['a/b', 'a/index.html'], ['a', 'index.html', 'a.html']],
  ['!/a !/a /a /a/b /A/** /a', ['a/b', 'a/index.html'], ['a', 'a.html']],
  ['!/.well-known/** /**', ['x/.well-known/a', '.well-known2/a'], ['.well-known/assetlinks.json']],
  ['/*/secret/**', ['a/secret/x', 'a/secret'], ['secret/x', 'a/b/secret/x']],
  ['/caf%C3%A9%201/** /cafe%CC%81', ['caf\u00e9 1/a', 'cafe\u0301 1/a', 'caf\u00e9', 'caf\u00e9.html'], ['cafe']],
  ['!/%2A /**', ['a', '**'], ['*']],
  ['/a.gz', ['a.gz', 'a.gz.br'], ['a', 'a.br']]
]

test('the first pattern that matches one of the URLs of a file decides', t => {
  for (const [text, locked, open] of decisions) {
    const patterns = patternsOf(text)
    for (const file of locked) t.true(isProtectedFile(file, patterns), `${text}: ${file}`)
    for (const file of open) t.false(isProtectedFile(file, patterns), `${text}: ${file}`)
  }
})

test('a path without a file is protected like each file that it could lead to', t => {
  for (const [text, locked, open] of [
    [
      '/reports /about.html',
      ['reports', 'Reports/', 'reports/x', 'about', 'ABOUT.html', 'about.html.gz'],
      ['', 'about/', 'x']
    ],
    ['!/welcome.html !/favicon.ico /**', ['', 'x', 'welcome/', 'Favicon.ico'], ['welcome.html', 'favicon.ico']],
    ['/index.html /a/index.html', ['', 'index', 'a', 'a/'], ['a/b', 'b']]
  ] as const) {
    const patterns = patternsOf(text)
    for (const path of locked) t.true(isProtectedPath(path, patterns), `${text}: ${path}`)
    for (const path of open) t.false(isProtectedPath(path, patterns), `${text}: ${path}`)
  }
})

test('a compressed variant, and the page of a path, are protected like the file for which they are sent', t => {
  const names = fc.array(fc.constantFrom('a', 'b', 'index', 'a.b', 'caf\u00e9', '*'), { minLength: 1, maxLength: 3 })
  const patterns = fc.constantFrom('/**', '/a/**', '!/a/b /**', '/*', '!/index.html /**', '/a', '/a/', '/%2A/**')
  fc.assert(
    fc.property(names, patterns, (segments, text) => {
      const [file, list] = [`${segments.join('/')}.html`, patternsOf(text)]
      const isProtected = isProtectedFile(file, list)
      return ['.gz', '.br'].every(extension => isProtectedFile(file + extension, list) === isProtected)
    })
  )
  t.pass()
})

test('without access.files all files are public', async t => {
  t.is((await load(t)).config.access.files, undefined)
})

test('the patterns of access.files are separated by white space, or are a list in a file', async t => {
  const files = { 'wwwroot/welcome.html': '' }
  const situations: readonly Situation[] = [
    { env: { [VARIABLE]: ' !/welcome.html\n/** ' }, files },
    { flags: { 'access.files': '!/welcome.html /**' }, files },
    { files: { ...files, 'platform-auth-server.config.yaml': 'access:\n  files: ["!/welcome.html", /**]\n' } }
  ]
  for (const situation of situations) {
    const { config } = await accepts(t, situation)
    const texts = config.access.files?.map(({ text }) => text)
    t.deepEqual(texts, ['!/welcome.html', '/**'])
  }
})

// The files would be public.
testSituations('access-files')

test('a pattern with a ! before it that lacks its quotation marks in YAML is an error, and not an empty list', async t => {
  const settingsFile = 'platform-auth-server.config.yaml'
  for (const value of ['!/welcome.html /**', '[!/welcome.html, /**]', '\n    - !/welcome.html\n    - /**']) {
    await refuses(t, { files: { [settingsFile]: `access:\n  files: ${value}\n` } }, `${settingsFile} not valid YAML`)
  }
})

test('a pattern that matches no file of wwwroot gets a warning, because the files that it was meant for may be public', async t => {
  const names = ['reports/a.html', 'about.html', 'data.json.gz', 'caf\u00e9/index.html']
  const files = Object.fromEntries(names.map(name => [`wwwroot/${name}`, '']))
  for (const [text, ...warnings] of [
    ['/reports/a.html /Reports/** !/about /data.json /caf%C3%A9/ /*/x /about/**'],
    [
      '!/Reports/a.html /report/** !/about.htm /cafe/ /reports/b.html /**',
      'access.files "!/Reports/a.html" no such file Letter case',
      'access.files "/report/**" no such file',
      'access.files "!/about.htm" no such file Letter case',
      'access.files "/cafe/" no such file',
      'access.files "/reports/b.html" no such file'
    ],
    ['!/caf%C3%A9 /reports /reports/** /about', 'access.files "!/caf%C3%A9" folder Use !/caf%C3%A9/**']
  ] as const)
    await accepts(t, { files, env: { [VARIABLE]: text } }, ...warnings)
  await accepts(t, { env: { [VARIABLE]: '/**' } }, 'access.files no effect wwwroot not set')
})
