// Every page of this server in a real browser, without a server: its accessibility, at 400 % zoom, and with the design of an operator.
import { createServer } from 'node:http'
import { join } from 'node:path'
import { createPages, type ErrorDetails } from '#src/pages/index.js'
import { accessibilityProblems, browserTest as test } from '../helpers/chromium.js'
import { listen } from '../helpers/ports.js'
import { tempFolder } from '../helpers/temp-folder.js'

const svg =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 40"><path d="M0 0h100v40z"/><script>document.title = "x"</script></svg>'
const template = `<!doctype html>
<html lang="{{lang}}">
<head>{{head}}{{style}}<style>footer { margin-top: 41px; }</style></head>
<body><main>{{brand}}{{content}}</main><footer><a href="https://app.test/legal">Legal notice</a></footer></body>
</html>`

const shared = {
  description: 'For support.',
  requestId: '3f0c2d5e',
  signInPath: '/login',
  homePath: '/',
  isSignedIn: false
}
const signedIn = { isSignedIn: true, canOpenAgain: true }
const rows: readonly (readonly [status: number, error: string, more?: Partial<ErrorDetails>])[] = [
  [401, 'unauthorized', { canOpenAgain: true }],
  [401, 'unauthorized', { canOpenAgain: true, frame: 'own' }],
  [401, 'unauthorized', { frame: 'other' }],
  [401, 'unauthorized', { form: 'unsent' }],
  [503, 'temporarily_unavailable', { form: 'unsent' }],
  [503, 'temporarily_unavailable', { form: 'executed', formPath: '/form' }],
  [503, 'temporarily_unavailable', { ...signedIn, mayBeOver: true, retryAfterSeconds: 30 }],
  [503, 'temporarily_unavailable', { ...signedIn, retryAfterSeconds: 30, signInAfterSeconds: 0 }],
  [502, 'upstream_unauthorized', signedIn],
  [504, 'provider_timeout', { inLogin: true, retryAfterSeconds: 30 }],
  [403, 'forbidden', { canOpenAgain: true, refusal: 'otherSite' }],
  [403, 'forbidden', { canOpenAgain: true, refusal: 'byScript' }],
  [403, 'forbidden', { refusal: 'refused' }],
  ...['account_not_allowed', 'insufficient_user_authentication', 'consent_required', 'access_denied'].map(
    error => [403, error, { inLogin: true }] as const
  ),
  [400, 'provider_refused', { inLogin: true }],
  [400, 'state_mismatch', { inLogin: true }],
  ...[404, 405, 413, 429, 500, 502, 503, 504].map(status => [status, 'x'] as const),
  [431, 'headers_too_large', { cookies: [{ name: 'an_application_'.repeat(9), bytes: 4000 }] }]
]

for (const [language, color] of [
  ['en'],
  ['ja', '#d9480f'],
  ['ja', '#ffd43b'],
  ['ja', '#fff'],
  ['ja', '#000']
] as const) {
  const design = color === undefined ? 'as it is' : `in Japanese with a logo, a template and the accent ${color}`
  test(`every page, ${design}, is accessible, fits 400 % zoom, and shows where the focus is`, async (t, visit) => {
    const folder = await tempFolder(t, { 'logo.svg': svg, 'pages/page.html': template })
    const branding = { name: 'Nordwerk', logo: join(folder, 'logo.svg'), color, folder: join(folder, 'pages') }
    const { errorPage, policyInFrame } = createPages(color === undefined ? {} : branding)
    const shown = color === undefined ? rows : rows.slice(0, 1)
    const server = createServer(({ url = '' }, response) => {
      const [status, error, more] = shown[Number(url.slice(1))] ?? [404, 'x']
      response.setHeader('Content-Type', 'text/html').setHeader('Content-Security-Policy', policyInFrame)
      response.end(errorPage({ ...shared, inLogin: false, status, error, ...more }, language))
    })
    const origin = `http://localhost:${await listen(t, server)}`
    const { page } = await visit({ viewport: { width: 320, height: 600 } })
    const structures = new Set<unknown>()
    for (const [index, row] of shown.entries()) {
      await page.goto(`${origin}/${index}`)
      const structure = await page.evaluate(
        `Array.from(document.querySelectorAll('*'), ({ tagName, className, hidden }) => [tagName, className, hidden]).join()`
      )
      // Pages that differ only in their texts have the same violations.
      if (!structures.has(structure)) {
        structures.add(structure)
        const problems = await accessibilityProblems(page)
        // Level AAA needs a contrast of 7. Neither black nor white has it on every colour that an operator may choose.
        t.deepEqual(color === undefined ? problems : problems.filter(problem => !problem.includes('-enhanced')), [])
      }
      await page.keyboard.press('Tab')
      const found = await page.evaluate(`[
        document.documentElement.scrollWidth, getComputedStyle(document.activeElement).outlineStyle,
        document.activeElement.className, getComputedStyle(document.querySelector('main')).borderRadius === '0px'
      ]`)
      t.deepEqual(found, [320, 'solid', 'button', false], JSON.stringify(row))
    }
    if (color === undefined) return
    t.is(await page.title(), 'サインインしていません – Nordwerk')
    await page.getByRole('img', { name: 'Nordwerk' }).waitFor()
    t.true(await page.evaluate('document.querySelector("img").naturalWidth > 0'), 'the browser shows the logo')
    t.is(await page.evaluate('getComputedStyle(document.querySelector("footer")).marginTop'), '41px')
  })
}
