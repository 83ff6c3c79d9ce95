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

test('hostile and any other strings are escaped in text and in attributes, and can be read back unchanged', t => {
  fc.assert(
    fc.property(anyText(), value => {
      const page = toMarkup(html`<a title="${value}" lang='${value}'>${[value, value]}</a>`)
      const [, ...inside] = /^<a title="([^"'`<>]*)" lang='([^"'`<>]*)'>([^"'`<>]*)<\/a>$/.exec(page) ?? []
      t.deepEqual(inside.map(unescaped), [value, value, value + value])
    }),
    { examples: hostile.map(value => [value]) }
  )
})

test('nested markup is escaped once, lists are joined, undefined becomes an empty string, and an object from JSON is never markup', t => {
  const items = ['a & b', '<c>'].map(text => html`<li>${text}</li>`)
  t.is(toMarkup(html`<ul>${items}${undefined}</ul>${3}`), '<ul><li>a &#38; b</li><li>&#60;c&#62;</li></ul>3')
  const forged = JSON.parse('{"markup": "<script>", "Symbol(markup)": "<script>"}')
  t.notRegex(toMarkup(html`<p>${forged}</p>`), /<script>/)
})

function unescaped(markup: string): string {
  return markup.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
}
