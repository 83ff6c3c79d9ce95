import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import test from 'ava'
import { pageStyle } from '#src/pages/index.js'

const wwwroot = new URL('../../wwwroot/', import.meta.url)

test('the starter page looks like our own pages: its style sheet opens with theirs', async t => {
  const sheet = await readFile(new URL('starter.css', wwwroot), 'utf8')
  t.true(
    sheet.startsWith(pageStyle),
    'after a change of src/pages/style.ts, put the same text at the head of starter.css'
  )
})

test('the starter pages refer to files that are there and to our own routes, by relative addresses only', async t => {
  for (const file of await readdir(wwwroot)) {
    const text = await readFile(new URL(file, wwwroot), 'utf8')
    const references = [
      ...text.matchAll(/\s(?:href|src|action)="([^"]*)"|fetch\('([^']*)'\)|await get\('([^']*)'\)|@import|url\(/g)
    ].map(match => match[1] ?? match[2] ?? match[3] ?? match[0])
    for (const reference of references.filter(reference => !reference.startsWith('data:image/svg+xml,'))) {
      const isRoute = /^api\/auth\/(login|logout|profile|token)$/.test(reference)
      t.true(
        isRoute || (!/^[/a-z]+:|^\//.test(reference) && existsSync(new URL(reference, wwwroot))),
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
