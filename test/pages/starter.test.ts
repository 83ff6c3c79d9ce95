import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import test from 'ava'
import { pageStyle } from '#src/pages/index.js'

const wwwroot = new URL('../../wwwroot/', import.meta.url)

// Served by src/http/starter-page.ts, beside the files of the folder.
const made = ['starter-base.css', 'starter-about.json']
const loaded = ['index.html', 'starter.css', 'starter.js', 'copy.js']

test('all that the starter page loads is smaller than 25 kB', async t => {
  const files = await Promise.all(loaded.map(file => readFile(new URL(file, wwwroot))))
  const bytes = files.reduce((sum, { length }) => sum + length, pageStyle.length)
  t.log(`${bytes} bytes`)
  t.true(bytes < 25_000)
})

test('no rule of the shared style stands in the style of the starter pages', async t => {
  const own = await readFile(new URL('starter.css', wwwroot), 'utf8')
  const rules = pageStyle.match(/^[^\s@}][^{]*\{[^}]*\}/gm) ?? []
  t.true(rules.length > 20)
  t.deepEqual(
    rules.filter(rule => own.includes(rule)),
    []
  )
})

test('the starter pages let nothing run that is not a file of their own', async t => {
  for (const file of ['index.html', 'your-pages.html']) {
    const page = await readFile(new URL(file, wwwroot), 'utf8')
    const [, policy = ''] = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page) ?? []
    t.true(policy.startsWith("default-src 'none'; script-src 'self'; style-src 'self'; "), file)
    t.notRegex(policy, /unsafe|https?:|\*/)
    t.notRegex(page, /<script>|\sstyle=| on[a-z]+=/)
  }
})

test('the starter pages refer to files that are there and to our own routes, by relative addresses only', async t => {
  for (const file of await readdir(wwwroot)) {
    const text = await readFile(new URL(file, wwwroot), 'utf8')
    const references = [
      ...text.matchAll(
        /\s(?:href|src|action)="([^"]*)"|fetch\('([^']*)'\)|await get\('([^']*)'\)|path: '([^']*)'|from '([^']*)'|@import|url\(/g
      )
    ].map(match => match.slice(1).find(Boolean) ?? match[0])
    for (const reference of references.filter(reference => !reference.startsWith('data:image/svg+xml,'))) {
      const isRoute = /^(api\/auth\/(login|callback|logout|profile|token)|api\/hubs|healthz|readyz)$/.test(reference)
      t.true(
        isRoute ||
          made.includes(reference) ||
          (!/^[/a-z]+:|^\//.test(reference) && existsSync(new URL(reference, wwwroot))),
        `${file}: ${reference}`
      )
    }
  }
})

test('without a script the starter page offers the login link and nothing that needs a script', async t => {
  const page = await readFile(new URL('index.html', wwwroot), 'utf8')
  const tags = page.match(/<(?:a|button|section)\s[^>]*>/g) ?? []
  const visible = tags.filter(tag => !/\shidden>/.test(tag))
  t.true(visible.some(tag => tag.includes('href="api/auth/login"')))
  // The copy button stands in a section that is hidden.
  t.deepEqual(
    visible.filter(tag => tag.startsWith('<section') || (tag.startsWith('<button') && !tag.includes('id="copy"'))),
    []
  )
})
