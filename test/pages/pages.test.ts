import { createHash } from 'node:crypto'
import test from 'ava'
import fc from 'fast-check'
import {
  createPages,
  type ErrorDetails,
  EXPLANATIONS,
  html,
  type LoginLoop,
  type LoginLoopReason,
  pageScript,
  pageStyle,
  renderPage,
  securityPolicyFor
} from '#src/pages/index.js'
import { english } from '#src/pages/texts.js'
import { ERRORS } from '#src/web/errors/error-codes.js'

const pages = createPages()
const pageSecurityPolicy = pages.securityPolicy
const errorPage = (details: ErrorDetails) => pages.errorPage(details, 'en')
const loginLoopPage = (loop: LoginLoop) => pages.loginLoopPage(loop, 'en')

const details = {
  status: 400,
  error: 'invalid_request',
  description: 'The state is not known.',
  requestId: 'req-1',
  inLogin: false,
  isUnreachable: false,
  isSignedIn: false,
  signInPath: '/base/api/auth/login',
  homePath: '/base/'
}
const loop = {
  error: 'session_cookie_missing' as const,
  reasons: ['cookiesBlocked'] as readonly LoginLoopReason[],
  applicationUrl: 'https://app.example/base/',
  requestId: 'req-1',
  signInPath: '/base/api/auth/login?return_to=%2Fbase%2Fmodels'
}

test('our pages load nothing from outside and contain no other script, and the content security policy contains the hashes of their style and script', t => {
  const hash = (text: string) => createHash('sha256').update(text).digest('base64')
  t.true(pageSecurityPolicy.includes(`style-src 'sha256-${hash(pageStyle)}'; script-src 'sha256-${hash(pageScript)}';`))
  t.is(errorPage(details).split(`<script type="module">${pageScript}</script>`).length, 2)
  for (const page of [errorPage(details), loginLoopPage(loop), renderPage({ title: 'A', body: html`<p>B</p>` })]) {
    const styles = [...page.matchAll(/<style>([\s\S]*?)<\/style>/g)].map(match => match[1])
    t.deepEqual(styles, [pageStyle])
    t.false(page.includes('style="'))
    t.notRegex(
      page.replace(pageScript, ''),
      /<script(?! type="module"><)|<link(?! rel="icon" href="data:)|<img|@import|url\(|srcset| on[a-z]+=/i
    )
  }
})

test('the content security policy forbids all loading, frames of other sites, and all form targets that are not listed', t => {
  const policy = (ancestors: string) =>
    `default-src 'none'; style-src HASH; script-src HASH; connect-src 'self'; img-src data:; form-action 'none'; frame-ancestors ${ancestors}; base-uri 'none'`
  t.is(pageSecurityPolicy.replace(/'sha256-[\w+/=]+'/g, 'HASH'), policy("'self'"))
  t.is(pages.policyInFrame.replace(/'sha256-[\w+/=]+'/g, 'HASH'), policy('*'))
  const ofForm = securityPolicyFor({ formTargets: ["'self'", 'http://localhost:8080'] })
  t.true(ofForm.includes("form-action 'self' http://localhost:8080; frame-ancestors 'none';"))
  t.notRegex(ofForm, /script/)
})

test('in a frame of another site, every error has one link, which opens the start page in a new tab', t => {
  for (const status of [400, 401, 403, 404, 500, 503]) {
    const page = errorPage({ ...details, status, frame: 'other', canOpenAgain: true, refusal: 'otherSite' })
    const links = page.match(/<a [^>]*>/g)
    t.deepEqual(links, ['<a class="button" href="/base/" target="_blank" rel="noopener">'])
  }
})

test('in a frame of this site, each button that leaves the page opens a new tab', t => {
  const page = errorPage({ ...details, status: 401, error: 'unauthorized', frame: 'own', canOpenAgain: true })
  const links = page.match(/<a [^>]*>/g) ?? []
  t.is(links.length, 2)
  for (const link of links) t.regex(link, / target="_blank" rel="noopener">$/)
})

test('the page for a form that was not processed says so, and how to send it again', t => {
  const form = { ...details, form: 'unsent' as const }
  const signedOut = errorPage({ ...form, status: 401, error: 'unauthorized' })
  t.regex(signedOut, /<h1>Nothing was saved<\/h1>[\s\S]*reload it, and the browser sends the form again/)
  t.deepEqual(signedOut.match(/<a [^>]*>/g), [
    '<a class="button" href="/base/api/auth/login" target="_blank" rel="noopener">'
  ])
  t.regex(errorPage({ ...form, status: 503, error: 'temporarily_unavailable' }), /<h1>Nothing was saved yet<\/h1>/)
})

test('the page of a lasting outage offers a sign-in after 30 seconds, unless a sign-in would fail as well', t => {
  const outage = { ...details, status: 503, isSignedIn: true, canOpenAgain: true, retryAfterSeconds: 2 }
  const signIn = (more: Partial<ErrorDetails>) => /<a [^>]*login"([^>]*)>/.exec(errorPage({ ...outage, ...more }))?.[1]
  t.is(signIn({}), undefined)
  t.is(signIn({ signInAfterSeconds: 28 }), ' hidden data-after="28"')
  t.is(signIn({ signInAfterSeconds: 0 }), '')
  const page = errorPage(outage)
  t.true(page.includes('<noscript><meta http-equiv="refresh" content="2"></noscript>'))
  t.regex(page, /<p role="status" data-while="503 504" data-seconds="2" data-again="Still not available/)
})

test('the page for large cookies lists their names and sizes', t => {
  const cookies = [{ name: 'other_app', bytes: 31_000 }]
  const page = errorPage({ ...details, status: 431, error: 'headers_too_large', cookies })
  t.true(page.includes('<li><code>other_app</code>: 31,000</li>'))
})

test('every error has a way on, also without a start page, of which no text then speaks', t => {
  for (const [seen, , topic, way] of EXPLANATIONS) {
    t.regex(way, /./, seen)
    t.notRegex(english[topic].next, /start page/, seen)
  }
  const page = errorPage({ ...details, homePath: undefined, status: 404, error: 'not_found' })
  t.regex(page, /<p>Check the URL for a typing mistake, or go back one page\.<\/p>\s*<div/)
  t.is(new Set(EXPLANATIONS.map(([seen]) => seen)).size, EXPLANATIONS.length)
})

test('the page of every error code has a button, whatever the request was', t => {
  const requests: readonly Partial<ErrorDetails>[] = [
    { canOpenAgain: true },
    { canOpenAgain: true, isSignedIn: true },
    { canOpenAgain: true, inLogin: true },
    { canOpenAgain: true, frame: 'own' },
    { canOpenAgain: true, frame: 'other' },
    ...[undefined, 'unsent' as const, 'executed' as const].map(form => ({ form })),
    ...(['otherSite', 'byScript', 'refused'] as const).map(refusal => ({ refusal }))
  ]
  for (const [error, [status]] of Object.entries(ERRORS)) {
    for (const request of requests) {
      const page = errorPage({ ...details, status, error, ...request })
      t.is(page.match(/<a class="button" /g)?.length, 1, `${error} ${JSON.stringify(request)}`)
    }
  }
})

const kinds = [
  [400, 'state_mismatch', 'in a login', /too old/i, 'sign-in'],
  [400, 'invalid_request', 'elsewhere', /did not accept/i, 'home'],
  [429, 'too_many_requests', 'elsewhere', /did not accept/i, 'home'],
  [401, 'unauthorized', 'elsewhere', /not signed in/i, 'sign-in'],
  [403, 'access_denied', 'in a login', /signing in was cancelled/i, 'sign-in'],
  [403, 'cross_site_request', 'elsewhere', /refused this request/i, 'home'],
  [404, 'not_found', 'elsewhere', /no page here/i, 'home'],
  [405, 'method_not_allowed', 'elsewhere', /cannot be used that way/i, 'home'],
  [413, 'content_too_large', 'in a login', /too large/i, 'home'],
  [418, 'teapot', 'in a login', /did not work/i, 'home'],
  [500, 'session_too_large', 'in a login', /larger than a session may be/i, 'home'],
  [500, 'server_error', 'elsewhere', /unexpected error/i, 'sign-in'],
  [502, 'provider_refused', 'in a login', /responded with an error/i, 'sign-in'],
  [503, 'temporarily_unavailable', 'in a login', /try again in a moment/i, 'sign-in'],
  [504, 'provider_timeout', 'elsewhere', /taking too long.*did not respond in time/is, 'sign-in']
] as const

for (const [status, error, place, says, way] of kinds) {
  test(`the page for ${status} ${error} ${place} says what happened and what to do, and has the details to quote`, t => {
    const page = errorPage({ ...details, status, error, inLogin: place === 'in a login' })
    t.regex(page, says)
    t.true(page.includes('href="/base/"'))
    t.is(page.includes('href="/base/api/auth/login"'), way === 'sign-in')
    t.true(page.includes(`<code>${status} ${error}</code>`))
    t.true(page.includes('<code>req-1</code>'))
    t.true(page.includes(status === 401 ? 'This browser has no session.' : 'The state is not known.'))
    t.is([...page.matchAll(/<h1>/g)].length, 1)
    t.is([...page.matchAll(/class="button"/g)].length, 1, 'the page has one main button')
  })
}

for (const [seconds, says] of [
  [1, 'in 1 second.'],
  [2, 'in 2 seconds.'],
  [90, 'in 90 seconds.'],
  [91, 'in 2 minutes.'],
  [3600, 'in 60 minutes.']
] as const) {
  test(`a page that reloads after ${seconds} seconds says so`, t => {
    const page = errorPage({ ...details, status: 503, error: 'temporarily_unavailable', retryAfterSeconds: seconds })
    t.true(page.includes(`This page tries again by itself ${says}`))
    t.regex(page, /<h1>The service is busy<\/h1>/)
  })
}

test('the page for a session that may be over offers a new login, even if the page reloads by itself', t => {
  const page = errorPage({ ...details, status: 503, isSignedIn: true, mayBeOver: true, retryAfterSeconds: 2 })
  t.regex(page, /<h1>Your session may have ended<\/h1>/)
  t.true(page.includes('<a class="button" href="/base/api/auth/login">Sign in again</a>'))
  t.notRegex(page, /do not have to do anything/)
})

test('hostile text in an error does not change the markup of its page', t => {
  const bare = tags(errorPage(details))
  fc.assert(
    fc.property(fc.string(), fc.constantFrom('<script>', '"', "'", '</p>', '-->', '&'), (text, weapon) => {
      const hostile = `${weapon}${text}${weapon}`
      const page = errorPage({ ...details, error: hostile, description: hostile, requestId: hostile })
      t.deepEqual(tags(page), bare)
      const diagnosis = loginLoopPage({ ...loop, reasons: ['otherHost'], requestId: hostile, startedAt: hostile })
      t.is(tags(diagnosis).filter(tag => tag === '<script').length, 1)
    })
  )
})

test('the page about a login loop lists the likely reasons in order and the address at which to open the application', t => {
  const page = loginLoopPage({ ...loop, reasons: ['secureCookieOnHttp', 'otherHost', 'cookiesBlocked'] })
  t.regex(
    page,
    /likely reasons[\s\S]*plain http[\s\S]*host name other than <code>app\.example<\/code>[\s\S]*blocks cookies/
  )
  t.true(page.includes('<a href="https://app.example/base/">https://app.example/base/</a>'))
  const signIn = 'https://app.example/base/api/auth/login?return_to=%2Fbase%2Fmodels'
  t.true(page.includes(`href="${signIn}"`), 'the sign-in link has the address at which the login can work')
  t.true(page.includes('Error <code>session_cookie_missing</code>'))
  t.notRegex(page, /request less access/)
  t.regex(loginLoopPage({ ...loop, reasons: ['cookieTooLarge'] }), /likely reason<[\s\S]*request less access/)
})

for (const retryAfterSeconds of [undefined, 7]) {
  test(`a user who is still signed in can try again, ${retryAfterSeconds ? 'and the page does so by itself' : 'and need not sign in'}`, t => {
    const page = errorPage({ ...details, status: 503, isSignedIn: true, retryAfterSeconds })
    t.regex(page, /<h1>You are still signed in<\/h1>[\s\S]*<a class="button" href="">Try again<\/a>/)
    t.notRegex(page, /Sign in again/)
    t.is(page.includes('tries again by itself in 7 seconds'), retryAfterSeconds === 7)
    t.regex(errorPage({ ...details, status: 404, isSignedIn: true }), /no page here/)
  })
}

test('the page for an unexpected error opens the same URL again, unless this would repeat a login or not repeat the request', t => {
  const page = (other: Partial<ErrorDetails>) =>
    errorPage({ ...details, status: 500, error: 'server_error', canOpenAgain: true, ...other })
  t.regex(page({}), /If it keeps happening[\s\S]*<a class="button" href="">Try again<\/a>/)
  t.notRegex(page({}), /Sign in again/)
  for (const other of [{ canOpenAgain: false }, { inLogin: true }]) {
    t.regex(page(other), />Sign in again</)
    t.notRegex(page(other), />Try again</)
  }
})

test('in every language, the page for 401 has no English sentence', t => {
  for (const language of ['de', 'fr', 'ja', 'zh']) {
    const page = pages.errorPage({ ...details, status: 401, error: 'unauthorized', description: 'No user.' }, language)
    t.notRegex(page, /No user|lang="en"/, language)
  }
})

function tags(page: string): string[] {
  return page.match(/<\/?[a-z0-9!]+/gi) ?? []
}
