// The pages in the language of the user and with the design of an operator, through a whole server.
import { join } from 'node:path'
import test from 'ava'
import { builtInTexts } from '#src/pages/texts.js'
import { startTestServer } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { guarded } from '../support.js'

const html = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

const accepted: Readonly<Record<string, readonly (string | undefined)[]>> = {
  en: [
    ...[undefined, '', '*', 'en-US,en;q=0.9,de;q=0.8', 'pt-BR, nl', ';;q=,,<script>', 'ja,'.repeat(400)],
    // Readers of Traditional Chinese. Their browsers also send `zh`.
    ...['zh-TW', 'zh-Hant', 'zh-HK,zh;q=0.9,en;q=0.8,fr;q=0.7']
  ],
  de: ['de', 'DE-at', 'de-CH,de;q=0.9,en;q=0.8'],
  fr: ['pt-BR,pt;q=0.9,fr;q=0.3', 'de;q=0, fr;q=0.1'],
  ja: ['fr-CA;q=0.5, ja;q=0.8', 'zh-tw,zh;q=0.9,ja;q=0.8'],
  zh: ['zh-CN,zh;q=0.9', 'zh-Hans-CN', 'zh-SG, zh;q=0.9', 'zh-MO, zh-CN;q=0.5']
}

test('Accept-Language determines the language of a page, and the page says its language, but JSON errors are in English', async t => {
  const { browser } = await startTestServer(t)
  for (const [language, sent] of Object.entries(accepted)) {
    for (const header of sent) {
      const page = await browser.get('/nothing-here', { headers: { accept: html, 'accept-language': header } })
      t.deepEqual([page.statusCode, page.headers.vary], [404, 'Accept, Accept-Language'])
      t.true(page.text().startsWith(`<!doctype html>\n<html lang="${language}" dir="ltr">`), header)
      t.true(page.text().includes(`<h1>${builtInTexts[language]?.notFound.title}</h1>`), header)
    }
  }
  const response = await browser.get('/nothing-here', { headers: { 'accept-language': 'de' } })
  t.is(response.json().error_description, 'There is nothing at this URL.')
  t.is(response.headers.vary, 'Accept')
})

test('with the settings pages, error pages have the name, logo, colour, texts and template of the operator', async t => {
  const folder = await tempFolder(t, {
    'logo.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
    'pages/de.json': JSON.stringify({ notSignedIn: { next: 'Rufen Sie 4711 an.' } }),
    'pages/page.html':
      '<!doctype html>\n<html lang="{{lang}}"><head>{{head}}{{style}}</head><body>{{brand}}{{content}}<footer></footer></body></html>'
  })
  const paths = { logo: join(folder, 'logo.svg'), folder: join(folder, 'pages') }
  const branding = { name: 'Nordwerk', color: '#d9480f', ...paths }
  const { browser } = await startTestServer(t, { settings: { branding } })
  const page = await browser.navigate(guarded, { headers: { 'accept-language': 'de-DE' } })
  t.is(page.statusCode, 401)
  for (const part of ['– Nordwerk</title>', 'alt="Nordwerk"', 'Rufen Sie 4711 an.', '<footer>', 'background: #d9480f;'])
    t.true(page.text().includes(part), part)
})
