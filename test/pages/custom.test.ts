import { chmod, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { createPages, PageFilesError, readLogo, readPagesFolder } from '#src/pages/index.js'
import { builtInTexts, english } from '#src/pages/texts.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { words } from '../helpers/words.js'

const svg = '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0h9v9z"/></svg>'
const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
const template = '<!doctype html>\n<html lang="{{lang}}"><head>{{head}}</head><body>{{content}}</body></html>'

const images: readonly (readonly [file: string, content: string | Buffer, type: string])[] = [
  ['a.svg', svg, 'image/svg+xml'],
  ['b.svg', `\uFEFF<?xml version="1.0"?>\n<!-- made by hand -->\n${svg}`, 'image/svg+xml'],
  ['c.svg', `<!DOCTYPE svg PUBLIC "a" "b">${svg}`, 'image/svg+xml'],
  ['d.png', png, 'image/png'],
  ['an-extension-that-is-wrong.svg', png, 'image/png'],
  ['e.jpg', Buffer.from('ffd8ffe000104a46', 'hex'), 'image/jpeg'],
  ['f.gif', 'GIF89a...', 'image/gif'],
  ['g.webp', 'RIFF\x10\x00\x00\x00WEBPVP8 ', 'image/webp']
]

test('the content of a logo determines its type, and the logo becomes a data: URL', async t => {
  const folder = await tempFolder(t, Object.fromEntries(images.map(([file, content]) => [file, content])))
  for (const [file, content, type] of images) {
    const [start, base64 = ''] = readLogo(join(folder, file)).split(',')
    t.is(start, `data:${type};base64`, file)
    t.deepEqual(Buffer.from(base64, 'base64'), Buffer.from(content), file)
  }
})

test('a file that is no logo is refused, and the message names the file and what is allowed', async t => {
  const folder = await tempFolder(t, {
    'empty.svg': '',
    'no-namespace.svg': '<svg><path d="M0 0h9v9z"/></svg>',
    'page.svg': `<!doctype html><title>${svg}</title>`.replace('<svg', '<p'),
    'text.png': 'PNG',
    'large.png': Buffer.concat([png, Buffer.alloc(32 * 1024)])
  })
  const format = /not in an image format .* Use an SVG image with xmlns=.* PNG, JPEG, WebP or GIF image\.$/
  for (const [file, problem] of [
    ['empty.svg', format],
    ['no-namespace.svg', format],
    ['page.svg', format],
    ['text.png', format],
    ['large.png', /32784 bytes\. At most 32768 bytes/],
    ['missing.png', /cannot be read, because there is no such file/],
    ['', /is not a file/]
  ] as const) {
    const error = t.throws(() => readLogo(join(folder, file)), { instanceOf: PageFilesError, message: problem })
    t.true(error?.message.startsWith(`the file ${join(folder, file)} `), file)
  }
})

type Files = Readonly<Record<string, string>>

/** The problems of a folder with these files, without the path of the folder. */
async function problemsOf(t: Parameters<typeof tempFolder>[0], files: Files) {
  const folder = await tempFolder(t, files)
  try {
    readPagesFolder(folder)
    return []
  } catch (error) {
    if (!(error instanceof PageFilesError)) throw error
    return error.problems.map(problem => problem.replaceAll(`${folder}/`, ''))
  }
}

const json = (content: unknown) => JSON.stringify(content)
const complete = json(english)

const titled = (title: unknown) => json({ notFound: { title } })
const unknownNames = words`Page.html pt-br.json german.json page.de.json x.html`

/** The beginning of each problem names the file. */
const broken: readonly (readonly [what: string, files: Files, problems: readonly RegExp[]])[] = [
  ['invalid JSON', { 'de.json': '{ "notFound": }' }, [/^the file de\.json is not valid JSON: .*}.*\.$/]],
  ['a list', { 'de.json': '[]' }, [/^the file de\.json must contain an object/]],
  [
    'a misspelt text',
    { 'de.json': json({ notFound: { titel: 'x' } }) },
    [/de\.json .*titel"\. The known texts are notFound\.title, /]
  ],
  ['a text outside of a group', { 'de.json': json({ title: 'x' }) }, [/"title"\. The known texts are /]],
  ['an empty text', { 'de.json': titled(' ') }, [/no text for notFound\.title/]],
  ['a number', { 'de.json': titled(4) }, [/no text for notFound\.title\. Write the text in quotation marks/]],
  [
    'an unknown placeholder',
    { 'de.json': json({ busy: { next: 'in {{seconds}}' }, notFound: { title: '{{token}}' } }) },
    [/de\.json .*\{\{seconds\}\} in busy\.next\. .*: \{\{when\}\}\.$/, /\{\{token\}\} in notFound\.title\. .*: none\.$/]
  ],
  ['an open placeholder', { 'de.json': json({ busy: { next: '{{when' } }) }, [/\{\{ without \}\} in busy\.next\.$/]],
  [
    'an incomplete new language',
    { 'es.json': json({ actions: { signIn: 'a', signInAgain: 'b', home: 'c' } }) },
    [/^the file es\.json lacks texts.* Add actions\.tryAgain, actions\.signInInNewTab, /]
  ],
  ['a template for a language without texts', { 'page.es.html': template }, [/page\.es\.html .* Add es\.json/]],
  [
    'unknown names',
    Object.fromEntries(unknownNames.map(name => [name, ''])),
    unknownNames.map(() => /has a name that the server does not know\. Use page\.html, or a name with a language/)
  ],
  [
    'a broken template',
    { 'page.html': '<p>{{secret}}</p>' },
    [/^the file page\.html does not begin/, /\{\{secret\}\}/, /lang/, /head/, /content/]
  ],
  ['a large file', { 'de.json': ' '.repeat(65_537) }, [/^the file de\.json has 65537 bytes\. At most 65536/]],
  ['two broken files', { 'de.json': '', 'fr.json': '' }, [/de\.json/, /fr\.json/]]
]

for (const [what, files, problems] of broken) {
  test(`a folder with ${what} is refused, and each message names the file`, async t => {
    const found = await problemsOf(t, files)
    t.is(found.length, problems.length, found.join('\n'))
    for (const [index, problem] of problems.entries()) t.regex(found[index] ?? '', problem)
  })
}

test('a file that is not in UTF-8 or cannot be read is refused', async t => {
  const folder = await tempFolder(t, { 'de.json': Buffer.from('{"a": "\xe4"}', 'latin1') })
  const assertRefused = (path: string, message: RegExp) => t.throws(() => readPagesFolder(path), { message })
  assertRefused(folder, /de\.json is not in UTF-8/)
  for (const missing of ['no', 'de.json']) {
    assertRefused(
      join(folder, missing),
      new RegExp(`${missing} cannot be read, because there is no such file\\. Use the path of a folder\\.$`)
    )
  }
  if (process.getuid?.() === 0) return
  await chmod(join(folder, 'de.json'), 0)
  assertRefused(folder, /cannot be read, because this user may not read it\. Use/)
})

test('a folder may have other files, and the links and hidden names of a mounted ConfigMap', async t => {
  const folder = await tempFolder(t, {
    'README.md': '# Ours',
    '..2026_11_22/de.json': json({ notFound: { title: 'Nichts da' } }),
    '.hidden.json': 'no JSON'
  })
  await symlink(join(folder, '..2026_11_22', 'de.json'), join(folder, 'de.json'))
  t.is(readPagesFolder(folder).texts.get('de')?.notFound.title, 'Nichts da')
})

const details = {
  status: 404,
  error: 'not_found',
  description: 'There is nothing at this address.',
  requestId: 'req-1',
  inLogin: false,
  isUnreachable: false,
  isSignedIn: false,
  signInPath: '/api/auth/login',
  homePath: '/'
}

test('texts of the folder replace ours one by one, and a complete file adds a language', async t => {
  const folder = await tempFolder(t, {
    'de.json': json({ notFound: { title: 'Nichts <da>' } }),
    'pt-BR.json': complete.replace('There is no page here', 'Não há página aqui'),
    'page.html': template.replace('<body>', '<body class="every">'),
    'page.de.html': template.replace('<body>', '<body class="german">')
  })
  const pages = createPages({ folder })
  t.is(pages.languageFor(['pt']), 'pt-BR')
  const [german, portuguese, french] = ['de', 'pt-BR', 'fr'].map(language => pages.errorPage(details, language))
  t.regex(german ?? '', /<html lang="de">[\s\S]*<body class="german"><h1>Nichts &#60;da&#62;<\/h1>/)
  t.true(german?.includes(builtInTexts.de?.notFound.happened ?? 'none'))
  t.regex(portuguese ?? '', /<html lang="pt-BR">[\s\S]*<body class="every"><h1>Não há página aqui<\/h1>/)
  t.regex(french ?? '', /<html lang="fr">[\s\S]*<body class="every"><h1>Il n’y a pas de page ici<\/h1>/)
})

test('the direction of a page follows its language', async t => {
  const { errorPage } = createPages({ folder: await tempFolder(t, { 'ar.json': complete, 'pa-Arab.json': complete }) })
  for (const [language, direction] of [
    ['ar', 'rtl'],
    ['pa-Arab', 'rtl'],
    ['ja', 'ltr']
  ] as const) {
    t.true(errorPage(details, language).includes(`<html lang="${language}" dir="${direction}">`))
  }
})

test('a user gets a language of the folder only in the script that the user reads', async t => {
  const { languageFor } = createPages({
    folder: await tempFolder(t, { 'zh-TW.json': complete, 'sr-Latn.json': complete })
  })
  t.is(languageFor(['zh-TW', 'zh', 'en']), 'zh-TW')
  t.is(languageFor(['zh-HK', 'zh', 'en']), 'zh-TW')
  t.is(languageFor(['zh', 'zh-TW']), 'zh')
  t.is(languageFor(['sr', 'de']), 'de')
  t.is(createPages().languageFor(['zh-TW', 'zh', 'fr']), 'fr')
  t.is(createPages().languageFor(['zh-Hant']), 'en')
})

test('the pages show the name and the logo, and the security policy allows exactly the styles of all templates', async t => {
  const folder = await tempFolder(t, {
    'logo.svg': svg,
    'pages/page.fr.html': template.replace('</head>', '<style>p { margin: 0 }</style></head>')
  })
  const logo = join(folder, 'logo.svg')
  const name = 'Smith & "Sons"'
  const named = createPages({ name, color: '#ffd43b' })
  t.regex(named.errorPage(details, 'en'), /<title>There is no page here – Smith &#38; &#34;Sons&#34;<\/title>/)
  t.regex(named.errorPage(details, 'en'), /<p class="brand">Smith &#38; &#34;Sons&#34;<\/p>\n<h1>/)
  const pages = createPages({ name, logo, folder: join(folder, 'pages') })
  const page = pages.errorPage(details, 'en')
  t.regex(
    page,
    /<p class="brand"><img src="data:image\/svg\+xml;base64,[\w+/=]+" alt="Smith &#38; &#34;Sons&#34;"><\/p>/
  )
  // One of them is the hash of the script.
  t.is(pages.securityPolicy.match(/'sha256-/g)?.length, 3)
  t.is(named.securityPolicy.match(/'sha256-/g)?.length, 2)
  t.notRegex(pages.securityPolicy, /unsafe|https?:|\*/)
})
