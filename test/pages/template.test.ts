import { createHash } from 'node:crypto'
import test from 'ava'
import { html } from '#src/pages/html.js'
import { PageFilesError } from '#src/pages/index.js'
import { parseTemplate } from '#src/pages/template.js'

const parse = (text: string) => parseTemplate(text, 'page.html')
const frame = (body: string, head = '') =>
  `<!doctype html>\n<html lang="{{lang}}"><head>{{head}}${head}</head><body>${body}</body></html>`
const values = {
  lang: 'en',
  dir: 'ltr',
  head: html`<title>A</title>`,
  style: html`<style>b</style>`,
  title: '<script>alert(1)</script> "quoted" {{name}}',
  name: `Smith & 'Sons' \`<b>`,
  brand: undefined,
  content: html`<h1>A</h1>`
}

test('a template shows its values, texts are escaped, and a value is never taken for a placeholder', t => {
  const template = parse(frame('<p title="{{title}}">{{ name }}</p>{{brand}}{{content}}'))
  const page = template.render(values)
  const title = '&#60;script&#62;alert(1)&#60;/script&#62; &#34;quoted&#34; {{name}}'
  t.is(
    page,
    `<!doctype html>\n<html lang="en"><head><title>A</title></head><body><p title="${title}">Smith &#38; &#39;Sons&#39; &#96;&#60;b&#62;</p><h1>A</h1></body></html>`
  )
})

test('a template gets no value except the eight that are documented', t => {
  const names = ['token', 'access_token', 'session', 'cookie', 'state', '__proto__', 'constructor', 'content.x', '']
  for (const name of names) {
    const error = t.throws(() => parse(frame(`{{content}}{{${name}}}`)), { instanceOf: PageFilesError })
    t.true(
      error?.message.startsWith(
        `the file page.html has the unknown placeholder {{${name}}}. The known ones are {{lang}}, {{dir}}, {{head}}`
      ),
      name
    )
  }
})

const unusable: readonly (readonly [what: string, template: string, problem: string])[] = [
  ['an empty file', '', 'does not begin with <!doctype html>'],
  ['no content', frame('<p></p>'), 'lacks the placeholder {{content}}'],
  ['no head', frame('{{content}}').replace('{{head}}', ''), 'lacks the placeholder {{head}}'],
  ['no language', frame('{{content}}').replace('{{lang}}', 'en'), 'lacks the placeholder {{lang}}'],
  ['an unclosed placeholder', frame('{{content}} {{name}'), 'has {{ without }}'],
  ['a placeholder in a style', frame('{{content}}<style>p { color: {{name}} }</style>'), 'has a placeholder inside'],
  ['a script', frame('{{content}}<script src="data:,1"></script>'), 'blocks: a script'],
  ['a script in an attribute', frame('{{content}}<p\nonclick=x>'), 'blocks: an attribute with a script'],
  ['a style in an attribute', frame('{{content}}<p class="a" style="color: red">'), 'blocks: a style attribute'],
  ['a frame', frame('{{content}}<iframe></iframe>'), 'blocks: a frame'],
  ['a form', frame('{{content}}<form></form>'), 'blocks: a form'],
  ['a base', frame('{{content}}', '<base href="/">'), 'blocks: a <base> element'],
  ['a reload', frame('{{content}}', '<meta http-equiv="refresh" content="1">'), 'blocks: a <meta> element'],
  ['a style sheet', frame('{{content}}', '<link rel="stylesheet" href="/a.css">'), 'blocks: a <link> element'],
  ['an image of another host', frame('{{content}}<img alt="" src="https://a.example/b.png">'), 'blocks: an image'],
  ['an image of this site', frame('{{content}}<img alt="" src=/b.png>'), 'blocks: an image'],
  ['a font', frame('{{content}}<style>@font-face { src: url("/a.woff2") }</style>'), 'blocks: a style that loads'],
  ['an import', frame('{{content}}<style>@import "a.css";</style>'), 'blocks: a style that loads']
]

for (const [what, template, problem] of unusable) {
  test(`a template with ${what} is refused with the reason`, t => {
    const error = t.throws(() => parse(template), { instanceOf: PageFilesError })
    t.true(error?.message.includes(problem), error?.message)
  })
}

test('a template may have links, inline images, its own styles, comments, and braces in its styles', t => {
  const css = '@media print { p { color: #000 }}\n.a { background: url(data:image/gif;base64,R0lGOD) }'
  const body = `<!-- <script> is blocked --><img alt="" src="data:image/gif;base64,R0lGOD"><a href="https://a.example/">A</a><svg><use href="#b"/></svg>`
  const template = parse(frame(`${body}{{content}}`, `<style>${css}</style><link rel="icon" href="data:,">`))
  t.deepEqual(template.styles, [css])
})

test('the styles of a template have the line breaks of the page in the browser, so that their hashes agree', t => {
  const template = parse(frame('{{content}}<style media="all">\r\np { color: red }\r\n</style>'))
  const [style = ''] = template.styles
  t.is(style, '\np { color: red }\n')
  const [, sent = ''] = /<style media="all">([\s\S]*?)<\/style>/.exec(template.render(values)) ?? []
  const hash = (text: string) => createHash('sha256').update(text).digest('base64')
  t.is(hash(sent), hash(style))
})
