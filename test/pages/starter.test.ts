import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import test from 'ava'
import { pageStyle } from '#src/pages/index.js'

const wwwroot = new URL('../../wwwroot/', import.meta.url)

// src/web/static/starter-page.ts serves this in addition to the files of the folder.
const made = 'starter-about.json'
const ofFolder = ['index.html', 'starter-base.css', 'starter.css', 'starter.js', 'copy.js']

test('the files that the starter page loads without a demo have less than 31 kB in total', async t => {
  const files = await Promise.all(ofFolder.map(file => readFile(new URL(file, wwwroot))))
  const bytes = files.reduce((sum, { length }) => sum + length, 0)
  t.log(`${bytes} bytes`)
  t.true(bytes < 31_000)
})

test('the recorded picture of the README shows the texts of the present pages', async t => {
  const picture = await readFile(new URL('../docs/demo.svg', wwwroot), 'utf8')
  const shown = [...picture.matchAll(/<desc>([^<]*)<\/desc>/g)].flatMap(([, texts = '']) => texts.split('\n'))
  t.true(shown.length > 10)
  const sources = await Promise.all(
    ['index.html', 'fifty.js', '../src/demo/pages.ts', '../src/demo/users.ts'].map(file =>
      readFile(new URL(file, wwwroot), 'utf8')
    )
  )
  for (const text of shown)
    t.true(
      sources.some(source => source.includes(text)),
      text
    )
})

test('the style of the starter pages does not repeat a rule of the shared style', async t => {
  const own = await readFile(new URL('starter.css', wwwroot), 'utf8')
  const rules = pageStyle.match(/^[^\s@}][^{]*\{[^}]*\}/gm) ?? []
  t.true(rules.length > 20)
  const repeated = rules.filter(rule => own.includes(rule))
  t.deepEqual(repeated, [])
})

test('the content security policy of the starter pages allows only scripts and styles from files of the same site', async t => {
  for (const file of ['index.html', 'your-pages.html']) {
    const page = await readFile(new URL(file, wwwroot), 'utf8')
    const [, policy = ''] = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page) ?? []
    t.true(policy.startsWith("default-src 'none'; script-src 'self'; style-src 'self'; "), file)
    t.notRegex(policy, /unsafe|https?:|\*/)
    t.notRegex(page, /<script>|\sstyle=| on[a-z]+=/)
  }
})

test('the starter pages refer only to existing files and to our own routes, by relative addresses', async t => {
  for (const file of await readdir(wwwroot)) {
    const text = await readFile(new URL(file, wwwroot), 'utf8')
    const references = [
      ...text.matchAll(
        /\s(?:href|src|action)="([^"]*)"|fetch\('([^']*)'\)|await get\('([^']*)'\)|path: '([^']*)'|from '([^']*)'|@import|url\(/g
      )
    ].map(match => match.slice(1).find(Boolean) ?? match[0])
    for (const reference of references.filter(reference => !reference.startsWith('data:image/svg+xml,'))) {
      const isRoute =
        /^((\.?\/)?api\/auth\/client\.js|api\/auth\/(login|callback|logout|profile|token)|api\/hubs|healthz|readyz)$/.test(
          reference
        )
      t.true(
        isRoute || reference === made || (!/^[/a-z]+:|^\//.test(reference) && existsSync(new URL(reference, wwwroot))),
        `${file}: ${reference}`
      )
    }
  }
})

test('without JavaScript the starter page shows the login link and no control that needs JavaScript', async t => {
  const page = await readFile(new URL('index.html', wwwroot), 'utf8')
  const tags = page.match(/<(?:a|button|section)\s[^>]*>/g) ?? []
  const visible = tags.filter(tag => !/\shidden>/.test(tag))
  t.true(visible.some(tag => tag.includes('href="api/auth/login"')))
  // The copy button is in a hidden section.
  const others = visible.filter(tag => !tag.startsWith('<a') && !tag.includes('id="copy"'))
  t.deepEqual(others, [])
})
