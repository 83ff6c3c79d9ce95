import test from 'ava'
import { whyNotFromGateway } from '#src/web/forward-auth/forward-auth.js'
import { words } from '../helpers/words.js'

for (const [what, url, headersDistinct, isAsked] of [
  ['a request of a gateway about another page', '/_forward_auth', { 'x-forwarded-uri': ['/page'] }, false],
  ['a request of a gateway to / about /', '/', { 'x-forwarded-uri': ['/'] }, false],
  ['a request with its own path in X-Forwarded-Uri', '/_forward_auth', { 'x-forwarded-uri': ['/_forward_auth'] }, true],
  ['a request with its own URL in X-Original-Uri', '/auth?a=1', { 'x-original-uri': ['/auth?a=1'] }, true],
  ['a request with its own path in one of two X-Original-Uri', '/auth', { 'x-original-uri': ['/page', '/auth'] }, true],
  ['a request whose path is also the start of X-Original-Uri', '/auth', { 'x-original-uri': ['/auth/page'] }, false],
  ['a request without X-Forwarded-Uri and X-Original-Uri', '/auth', {}, false]
] as const) {
  test(`forward-auth: ${what} ${isAsked ? 'counts' : 'does not count'} as sent by a browser`, t => {
    const headers = { ...headersDistinct } as Record<string, string[]>
    t.is(whyNotFromGateway({ url, headersDistinct: headers }), isAsked ? 'open_location' : undefined)
  })
}

for (const spelling of words`
  //_forward_auth /%5fforward_auth /%5Fforward%5fauth /x/../_forward_auth /x/%2e%2e/_forward_auth /./_forward_auth
  /x%CC%81${'%CC%81'.repeat(40)}/../_forward_auth ${'/'.repeat(2000)}_forward_auth /_forward_auth/ /_forward_auth?a=1 /_forward_auth#a /%255fforward_auth \_forward_auth
  https://app.example/_forward_auth`) {
  test(`forward-auth: the URL of forward-auth is recognized if a browser spells it ${spelling}`, t => {
    const asked = { url: '/_forward_auth', headersDistinct: { 'x-original-uri': [spelling] } }
    t.is(whyNotFromGateway(asked), 'open_location')
    const passedOn = { url: spelling, headersDistinct: { 'x-forwarded-uri': ['/_forward_auth'] } }
    t.is(whyNotFromGateway(passedOn), 'open_location')
  })
}

test('forward-auth: a path that is too long to compare is refused, and a long query is not', t => {
  const ask = (target: string, url = '/_forward_auth') =>
    whyNotFromGateway({ url, headersDistinct: { 'x-original-uri': ['/page', target] } })
  t.is(ask(`/${'x/../'.repeat(1000)}_forward_auth`), 'long_path')
  t.is(ask(`/page?${'x'.repeat(5000)}`), undefined)
  t.is(ask(`/${'x'.repeat(5000)}`, '/'), undefined)
  t.is(ask('/page', `/${'x'.repeat(5000)}`), 'long_path')
})
