import test from 'ava'
import fc from 'fast-check'
import { html, toMarkup } from '#src/pages/html.js'
import { anyText } from '../helpers/any-text.js'

const hostile = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '</title></style></textarea><svg onload=alert(1)>',
  '&lt;b&gt; &#60;i&#62; &amp;amp;',
  '`{{7 * 7}}`',
  '<!-- --> ]]> <?php ?>',
  '\u202Egnp.exe \u0000 \uFEFF \uD800'
]

test('hostile values are escaped in text and in attributes', t => {
  for (const value of hostile) {
    const page = toMarkup(html`<p title="${value}" lang='${value}'>${value}</p>`)
    t.deepEqual(page.match(/[<>"'`]/g), ['<', '"', '"', "'", "'", '>', '<', '>'], value)
    t.is(unescaped(page.slice(page.indexOf('>') + 1, page.lastIndexOf('<'))), value)
  }
})

test('any text can be read back unchanged from the escaped markup', t => {
  fc.assert(
    fc.property(anyText(), value => {
      const page = toMarkup(html`<a title="${value}">${[value, value]}</a>`)
      const inside = /^<a title="([^"<>]*)">([^<>]*)<\/a>$/.exec(page)
      t.is(unescaped(inside?.[1] ?? 'broken out'), value)
      t.is(unescaped(inside?.[2] ?? 'broken out'), value + value)
    })
  )
  t.pass()
})

test('nested markup is escaped once, lists are joined, and undefined becomes an empty string', t => {
  const items = ['a & b', '<c>'].map(text => html`<li>${text}</li>`)
  t.is(toMarkup(html`<ul>${items}${undefined}</ul>${3}`), '<ul><li>a &#38; b</li><li>&#60;c&#62;</li></ul>3')
})

test('an object from JSON is never treated as markup', t => {
  const forged = JSON.parse('{"markup": "<script>", "Symbol(markup)": "<script>"}')
  t.notRegex(toMarkup(html`<p>${forged}</p>`), /<script>/)
})

function unescaped(markup: string): string {
  return markup.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
}
