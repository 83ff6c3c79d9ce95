import test, { type ExecutionContext } from 'ava'
import fc from 'fast-check'
import { filePatterns, isProtectedFile } from '#src/config/file-patterns.js'
import { load, problemsOf, type Situation } from './given.js'

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
  ['/reports/ /data.json', ['reports/index.html', 'data.json', 'data.json.gz'], ['reports/a', 'reports.html', 'data']],
  ['/about', ['about.html', 'about', 'about.html.gz', 'about.gz'], ['about/index.html', 'about.htm']],
  ['/', ['index.html', 'index.html.br'], ['a/index.html', 'a']],
  ['!/* /**', ['a/b', 'a/index.html'], ['a', 'index.html', 'a.html']],
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
  const texts = (patterns: Awaited<ReturnType<typeof load>>['config']['access']['files']) =>
    patterns?.map(({ text }) => text)
  const situations: readonly Situation[] = [
    { env: { [VARIABLE]: ' !/welcome.html\n/** ' }, files },
    { flags: { 'access.files': '!/welcome.html /**' }, files },
    { files: { ...files, 'platform-auth-server.config.yaml': 'access:\n  files: ["!/welcome.html", /**]\n' } }
  ]
  for (const given of situations) {
    const { config, warnings } = await load(t, given)
    t.deepEqual(texts(config.access.files), ['!/welcome.html', '/**'])
    t.deepEqual(warnings, [])
  }
})

async function refusal(t: ExecutionContext, text: string): Promise<string> {
  const problems = await problemsOf(t, { env: { [VARIABLE]: text } })
  t.deepEqual(
    problems.map(({ key }) => key),
    ['access.files']
  )
  return problems[0]?.message ?? ''
}

test('a pattern that cannot be right is an error, because the files would be public', async t => {
  const refused: readonly (readonly [text: string, message: RegExp])[] = [
    ['', /^is empty/],
    ['reports/**', /"reports\/\*\*" cannot be used: it does not begin with a slash/],
    ['!', /"!" cannot be used: it does not begin with a slash/],
    ['! /a /**', /"!" cannot be used/],
    ['!!/a /**', /does not begin with a slash/],
    ['https://app.example/reports/**', /does not begin with a slash/],
    ['/reports/*.html', /it has a \* inside a segment/],
    ['/reports/**,/data/**', /it has a \* inside a segment/],
    ['/reports/**/x', /it has a \* inside a segment/],
    ['/a?x=1', /it contains a query/],
    ['/a#x', /it contains a fragment/],
    ['/a/../b', /it has a dot segment/],
    ['/a//b', /it has an empty segment/],
    ['/caf\u00e9', /must be percent-encoded/],
    ['/%ff', /not UTF-8/],
    ['/a%2Fb', /encoded slash/],
    ['/** !/welcome.html', /contains "!\/welcome\.html" after "\/\*\*", which already decides about the same files/],
    ['/a/** /a/b', /contains "\/a\/b" after "\/a\/\*\*"/],
    ['/a/** !/A/b', /contains "!\/A\/b" after "\/a\/\*\*"/],
    ['!/welcome.html', /protects no file, because every pattern begins with "!"/]
  ]
  for (const [text, message] of refused) t.regex(await refusal(t, text), message, text)
})

test('a pattern with a ! before it that lacks its quotation marks in YAML is an error, and not an empty list', async t => {
  for (const value of ['!/welcome.html /**', '[!/welcome.html, /**]', '\n    - !/welcome.html\n    - /**']) {
    const files = { 'platform-auth-server.config.yaml': `access:\n  files: ${value}\n` }
    const problems = await problemsOf(t, { files })
    t.regex(problems.map(({ message }) => message).join(), /is not valid YAML/, value)
  }
})

test('a pattern that matches no file of wwwroot gets a warning, because the files that it was meant for may be public', async t => {
  const files = {
    'wwwroot/reports/a.html': '',
    'wwwroot/about.html': '',
    'wwwroot/data.json.gz': '',
    'wwwroot/caf\u00e9/index.html': ''
  }
  const [matching, others] = [
    '/reports/a.html /Reports/** !/about /data.json /caf%C3%A9/ /*/x /about/**',
    '!/Reports/a.html /report/** !/about.htm /cafe/ /reports/b.html'
  ]
  const warningsFor = async (text: string, given: Readonly<Record<string, string>>) =>
    (await load(t, { files: given, env: { [VARIABLE]: text } })).warnings.map(({ message }) => message)
  t.deepEqual(await warningsFor(matching, files), [])
  t.deepEqual(
    await warningsFor(`${others} /**`, files),
    others.split(' ').map(text => {
      const note = text.startsWith('!') ? ' Letter case matters.' : ''
      return `contains "${text}", but wwwroot has no such file or folder.${note}`
    })
  )
  const ofFolders = await warningsFor('/reports !/caf%C3%A9 /reports/** /about', files)
  t.deepEqual(ofFolders, [
    'contains "/reports", but this is a folder, and the pattern matches none of its files. Use /reports/**.',
    'contains "!/caf%C3%A9", but this is a folder, and the pattern matches none of its files. Use !/caf%C3%A9/**.'
  ])
  t.regex((await warningsFor('/**', {})).join(), /^has no effect, because wwwroot is not set/)
})
