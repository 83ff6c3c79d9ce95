// The attempts that are made against each gateway. Each one returns its result as text, to be compared with the
// expected result.
//
// The internal token has the wide scope and stays on the server. In dual mode pages also get a public token, which has
// only the public scopes. In single mode there is only one token, and it stays on the server.
import { publicOrigin } from '../../helpers/config.js'
import { faults } from '../../helpers/hostile-idp/index.js'
import { linesOf } from '../../helpers/markdown.js'
import type { RawAnswer } from '../../helpers/raw.js'
import { readText } from '../../helpers/repository.js'
import { returnPaths } from '../../helpers/return-paths.js'
import { inScope } from '../../helpers/scope.js'
import { sessionCookies, sessionHeader } from '../../web/support.js'
import { authorizationsIn, type Received } from './back-end.js'
import type { Gateway } from './gateways.js'
import { type RawRequest, type Site, type SiteOptions, startSite } from './site.js'

interface Attempt {
  readonly tried: string
  readonly expected: string
  readonly site?: SiteOptions
  run(site: Site): Promise<string>
}

/** Makes the attempt at a separate site. */
export async function resultOf(gateway: Gateway, { tried, expected, site, run }: Attempt) {
  const result = await inScope(async t => run(await startSite(t, gateway, site))).catch(
    (error: Error) => `an error: ${error.message}`
  )
  return { result, expected: gateway.exceptions[tried] ?? expected }
}

const CLIENT = 'Bearer of-the-client'
const TOKEN_ALONE = 'the internal token alone'

const [, authorizations = '', forgeries = ''] = readText('test/real/gateways/attempts.txt').split(/^# .*\n/m)

/** The columns of each line. */
const rowsOf = (text: string) => linesOf(text).map(line => line.split(/ *\| */))

const linesIn = (headers = '') =>
  headers.split('&').flatMap(line => (line === '' ? [] : line.replace('CLIENT', CLIENT).replace('OURS', publicOrigin)))

export const attempts: readonly Attempt[] = [
  allDay({ mode: 'single', cookies: 1, accessTokenLength: 300 }),
  allDay({ mode: 'single', cookies: 2, accessTokenLength: 4500 }),
  allDay({ mode: 'dual', cookies: 1, accessTokenLength: 300 }),
  allDay({ mode: 'dual', cookies: 2, accessTokenLength: 2250 }),
  {
    tried: '50 parallel requests on an expired session',
    expected: '50 responses with 200, 1 refresh',
    async run({ browser, clock, idp }) {
      clock.advanceSeconds(3600)
      const before = idp.tokenRequests.length
      const answers = await Promise.all(Array.from({ length: 50 }, () => browser.fetch('/app')))
      const good = answers.filter(({ statusCode }) => statusCode === 200).length
      return `${good} responses with 200, ${idp.tokenRequests.length - before} refresh`
    }
  },
  ...rowsOf(authorizations).map(([tried = '', headers, expected]) =>
    authorization(tried, { headers: linesIn(headers) }, expected)
  ),
  authorization('Authorization as an announced trailer', withTrailer(['Trailer: Authorization'])),
  authorization('Authorization as a trailer that is not announced', withTrailer([])),
  {
    tried: 'Authorization of a user who is not signed in',
    expected: '401, the back end is not asked',
    run: site => refusal(site, { cookie: '', headers: [`Authorization: ${CLIENT}`] })
  },
  ...rowsOf(forgeries).map(([tried = '', headers, status = '']) => forgery(tried, linesIn(headers), status)),
  handshake('a WebSocket of our own page', `101, ${TOKEN_ALONE}`, [`Origin: ${publicOrigin}`]),
  handshake('a WebSocket of another site', '403, the back end is not asked', ['Origin: https://evil.example']),
  handshake('a WebSocket with the Origin null', '403, the back end is not asked', ['Origin: null']),
  {
    tried:
      'the forward-auth address: its path in 5 spellings, its host, an absolute target, CONNECT, X-Accel-Redirect of the back end',
    expected: 'no response has the token in its headers',
    run: askFromOutside
  },
  {
    tried: 'a request with an old cookie after a logout',
    expected: '401, the back end is not asked',
    async run(site) {
      const cookie = sessionHeader(site.browser)
      const before = await site.send({ cookie })
      if (before.statusCode !== 200) return `${before.statusCode} before the logout`
      await site.browser.navigate('/api/auth/logout')
      return refusal(site, { cookie })
    }
  },
  {
    tried: 'the provider is busy when the session has to be refreshed',
    expected: '503 with Session-Status: retry, Retry-After: 7, then 200',
    async run({ send, clock, idp, browser }) {
      clock.advanceSeconds(3600)
      idp.fail('token', faults.tooManyRequests(7))
      const busy = await send({})
      clock.advanceSeconds(10)
      const later = await browser.fetch('/app')
      return `${statusOf(busy)}, Retry-After: ${headerOf(busy, 'retry-after')}, then ${later.statusCode}`
    }
  },
  {
    tried: 'the server does not run',
    expected: 'an error, the back end is not asked',
    async run(site) {
      const before = await site.reached()
      await site.server.close()
      const { statusCode } = await site.send({})
      const asked = (await site.reached()) - before
      return `${statusCode >= 500 ? 'an error' : statusCode}, the back end is ${asked ? '' : 'not '}asked`
    }
  },
  ...returnPaths.map(path => ({
    tried: `a user who is not signed in opens ${path}, and signs in`,
    expected: 'the back end gets this path',
    async run({ signedOut, asked }: Site) {
      const browser = signedOut()
      // A fragment never reaches a server. The browser adds it to the URL after the redirects.
      const sent = path.split('#', 1).join()
      const { statusCode } = await browser.navigate(sent, { follow: true })
      const last = (await asked()).at(-1)
      return statusCode === 200 && last === sent ? 'the back end gets this path' : `${statusCode}, ${last}`
    }
  })),
  {
    tried: 'the header Session-Status of a back end',
    expected: '200 without Session-Status',
    run: async ({ send }) => statusOf(await send({ target: '/app?session-status=signed-out' }))
  },
  {
    tried: 'the header Session-Status for a script of a user who is not signed in',
    expected: '401 with Session-Status: signed-out',
    run: async ({ send }) => statusOf(await send({ cookie: '', headers: ['Sec-Fetch-Mode: cors'] }))
  },
  ...(
    [
      ['GET that prefers HTML', '302', ['Accept: text/html,application/xhtml+xml,*/*;q=0.8']],
      ['GET that prefers JSON', '401', ['Accept: application/json, text/html']],
      ['GET of a script that accepts HTML', '401', ['Accept: text/html', 'X-Requested-With: XMLHttpRequest']],
      ['GET of an Android WebView', '302', ['Accept: text/html', 'X-Requested-With: com.example.app']]
    ] as const
  ).map(([what, expected, headers]) => ({
    tried: `a user who is not signed in, over plain http, without Fetch Metadata: ${what}`,
    expected,
    run: async ({ send }: Site) => String((await send({ cookie: '', headers })).statusCode)
  })),
  {
    tried: 'a body of 2 MB',
    expected: '200',
    async run({ send }) {
      const body = 'a'.repeat(2_000_000)
      const headers = ['Sec-Fetch-Site: same-origin', `Content-Length: ${body.length}`]
      return String((await send({ method: 'POST', headers, body })).statusCode)
    }
  },
  {
    tried: 'a user who is not signed in opens a page',
    expected: '302 to the login',
    async run({ send }) {
      const answer = await send({ target: '/app?a=1&b=2', cookie: '', headers: ['Sec-Fetch-Mode: navigate'] })
      const location = headerOf(answer, 'location') ?? ''
      // Traefik forwards the redirect of the login route itself, which leads to the identity provider.
      const isLogin = location.includes('/api/auth/login') || location.includes('code_challenge=')
      return `${answer.statusCode} to ${isLogin ? 'the login' : location}`
    }
  },
  ...[['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document'], []].map(metadata => ({
    tried: `a user who is not signed in sends a form with ${metadata.length} headers of Fetch Metadata`,
    expected: '401, which says that nothing was saved, the back end is not asked',
    async run({ send, reached }: Site) {
      const before = await reached()
      const sent = { method: 'POST', cookie: '', body: 'text=typed' }
      const headers = [...metadata, 'Accept: text/html,*/*;q=0.8', `Origin: ${publicOrigin}`, 'Content-Length: 10']
      const { statusCode, body } = await send({ ...sent, headers })
      const page = body.toString().includes('Nothing was saved.')
        ? 'which says that nothing was saved'
        : 'without a page'
      return `${statusCode}, ${page}, the back end is ${(await reached()) > before ? '' : 'not '}asked`
    }
  })),
  {
    tried: 'a session of 4 cookies',
    expected: `4 cookies, ${TOKEN_ALONE}`,
    site: { mode: 'dual', accessTokenLength: 6000 },
    async run(site) {
      const answer = await site.send({})
      return `${sessionCookies(site.browser).length} cookies, ${authorizationResult(answer, site)}`
    }
  },
  {
    tried: '100 kB of other cookies',
    expected: 'refused, the back end is not asked',
    async run(site) {
      const result = await refusal(site, { cookie: `${sessionHeader(site.browser)}; a=${'a'.repeat(100_000)}` })
      return result.replace(/^(400|431|494|500|503)/, 'refused')
    }
  }
]

function allDay({ cookies, ...site }: Required<SiteOptions> & { readonly cookies: number }): Attempt {
  const grants = site.mode === 'dual' ? 48 : 24
  async function run({ browser, clock, idp }: Site): Promise<string> {
    const before = idp.tokenRequests.length
    const count = sessionCookies(browser).length
    let set = 0
    let lost = 0
    for (let hour = 1; hour <= 24; hour++) {
      clock.advance(3_599_500)
      for (const status of [200, 204, 301, 404, 500]) {
        const answer = await browser.fetch(`/app/${status}`)
        set += answer.setCookies.length
        if (answer.statusCode !== status) lost += 1
      }
    }
    const calls = idp.tokenRequests.length - before
    const { statusCode, setCookies } = await browser.fetch('/api/auth/profile')
    if (statusCode !== 200 || setCookies.length === 0) lost += 1
    return `session cookies: ${count}, calls to the provider: ${calls}, ${set} Set-Cookie, ${lost} lost, ${idp.reuses.length} reuses`
  }
  return {
    tried: `24 refreshes in ${site.mode} mode, session cookies: ${cookies}, the back end responds with 200, 204, 301, 404, 500`,
    expected: `session cookies: ${cookies}, calls to the provider: ${grants}, 0 Set-Cookie, 0 lost, 0 reuses`,
    site,
    run
  }
}

function authorization(tried: string, request: RawRequest, expected = TOKEN_ALONE): Attempt {
  return { tried, expected, run: async site => authorizationResult(await site.send(request), site) }
}

/** `Authorization` is sent in a trailer. */
function withTrailer(headers: readonly string[]): RawRequest {
  return {
    method: 'POST',
    headers: [`Origin: ${publicOrigin}`, ...headers, 'Transfer-Encoding: chunked'],
    body: `4\r\nbody\r\n0\r\nAuthorization: ${CLIENT}\r\n\r\n`
  }
}

function authorizationResult({ statusCode, body }: RawAnswer, site: Site): string {
  if (statusCode !== 200) return String(statusCode)
  const received = JSON.parse(body.toString()) as Received
  const authorizations = authorizationsIn(received)
  if (authorizations.includes(CLIENT)) return "THE CLIENT'S Authorization"
  if (authorizations.length > 0 && authorizations.join() !== `Bearer ${site.token()}`) return 'ANOTHER Authorization'
  const others = received.headers.filter(([, value]) => value.includes(CLIENT)).map(([name]) => name)
  const trailers = received.trailers.filter(([, value]) => value.includes(CLIENT)).map(([name]) => `trailer ${name}`)
  const token = authorizations.length === 0 ? 'no Authorization' : TOKEN_ALONE
  return [...new Set([token, ...others, ...trailers])].join(', ')
}

function forgery(tried: string, headers: readonly string[], status: string): Attempt {
  const expected = status === '200' ? '200' : `${status}, the back end is not asked`
  const [method = 'GET'] = /^[A-Z]{2,}/.exec(tried) ?? []
  const length = method === 'GET' ? [] : ['Content-Length: 0']
  return { tried, expected, run: site => refusal(site, { method, headers: [...headers, ...length] }) }
}

/** Returns the status, and for a status other than 200 whether the request still reached the back end. */
async function refusal(site: Site, request: RawRequest): Promise<string> {
  const before = await site.reached()
  const { statusCode } = await site.send(request)
  if (statusCode === 200) return '200'
  const asked = (await site.reached()) - before
  return `${statusCode}, the back end is ${asked > 0 ? 'ASKED' : 'not asked'}`
}

function handshake(tried: string, expected: string, headers: readonly string[]): Attempt {
  const request: RawRequest = {
    headers: [
      ...headers,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
    ]
  }
  return {
    tried,
    expected,
    async run(site) {
      const before = await site.reached()
      const answer = await site.send(request)
      const seen = headerOf(answer, 'x-seen-authorization')
      if (seen !== undefined) return `${answer.statusCode}, ${seen === `Bearer ${site.token()}` ? TOKEN_ALONE : seen}`
      return `${answer.statusCode}, the back end is ${(await site.reached()) > before ? 'ASKED' : 'not asked'}`
    }
  }
}

async function askFromOutside(site: Site): Promise<string> {
  const requests: readonly RawRequest[] = [
    { target: '/_forward_auth' },
    { target: '/_forward_auth?a=1' },
    { target: '//_forward_auth' },
    { target: '/a/../_forward_auth' },
    { target: '/%5fforward_auth' },
    { target: '/' },
    { target: '/', host: `127.0.0.1:${site.server.forwardAuthPort}` },
    { target: `http://127.0.0.1:${site.server.forwardAuthPort}/` },
    { method: 'CONNECT', target: `127.0.0.1:${site.server.forwardAuthPort}` },
    { headers: ['X-Forwarded-Uri: /_forward_auth', 'X-Accel-Redirect: /_forward_auth'] },
    { target: '/accel-redirect' }
  ]
  for (const request of requests) {
    const answer = await site.send(request)
    if (answer.head.includes(site.token())) return `the token in the response to ${request.method} ${request.target}`
  }
  return 'no response has the token in its headers'
}

function statusOf(answer: RawAnswer): string {
  const status = headerOf(answer, 'session-status')
  return `${answer.statusCode} ${status === undefined ? 'without Session-Status' : `with Session-Status: ${status}`}`
}

function headerOf({ head }: RawAnswer, name: string): string | undefined {
  return new RegExp(`^${name}: *(.*)$`, 'im').exec(head)?.[1]?.trim()
}
