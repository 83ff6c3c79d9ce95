// The pages with the design of an operator, in a real browser.
import { join } from 'node:path'
import { accessibilityProblems, browserTest as test } from '../helpers/chromium.js'
import { deployWithHostileIdp } from '../helpers/deployment.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { open } from './starter-page.js'

const svg =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 40"><path d="M0 0h100v40z"/><script>document.title = "x"</script></svg>'
const template = `<!doctype html>
<html lang="{{lang}}">
<head>{{head}}{{style}}<style>footer { margin-top: 41px; }</style></head>
<body><main>{{brand}}{{content}}</main><footer><a href="https://app.test/legal">Legal notice</a></footer></body>
</html>`

for (const color of ['#d9480f', '#ffd43b', '#fff', '#000']) {
  test(`a page in Japanese with a logo, a template and the accent ${color} is accessible`, async (t, visit) => {
    const folder = await tempFolder(t, { 'logo.svg': svg, 'pages/page.html': template })
    const branding = { name: 'Nordwerk', logo: join(folder, 'logo.svg'), color, folder: join(folder, 'pages') }
    const { page, url } = await open(
      deployWithHostileIdp(t, { mode: 'dual', settings: { branding } }),
      visit,
      { locale: 'ja-JP' },
      'api/auth/token'
    )
    await page.getByRole('heading', { name: 'サインインしていません', level: 1 }).waitFor()
    t.is(await page.title(), 'サインインしていません – Nordwerk')
    t.is(await page.evaluate('document.documentElement.lang'), 'ja')
    await page.getByRole('img', { name: 'Nordwerk' }).waitFor()
    t.true(await page.evaluate('document.querySelector("img").naturalWidth > 0'), 'the browser shows the logo')
    t.is(await page.evaluate('getComputedStyle(document.querySelector("footer")).marginTop'), '41px')
    t.not(await page.evaluate('getComputedStyle(document.querySelector("main")).borderRadius'), '0px')
    // Level AAA needs a contrast of 7. Neither black nor white has it on every colour that an operator may choose.
    const problems = await accessibilityProblems(page)
    const others = problems.filter(problem => !problem.includes('color-contrast-enhanced'))
    t.deepEqual(others, [])
    await page.getByRole('link', { name: 'サインイン' }).click()
    await page.waitForURL(url)
    t.pass()
  })
}
