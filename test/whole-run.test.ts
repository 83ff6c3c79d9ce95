// Each test runs a server through logins, errors, refreshes, provider failures, profiles and logouts. It then searches
// every byte sent and every log line, at level trace, for all secrets that were issued.
import { randomBytes } from 'node:crypto'
import test, { type ExecutionContext } from 'ava'
import type { Browser, BrowserResponse } from './helpers/browser.js'
import { eventually } from './helpers/eventually.js'
import { createHostileIdp, type Fault, faults, type HostileIdp } from './helpers/hostile-idp/index.js'
import { type Confidential, findLeaks, recordAnswers } from './helpers/ledger.js'
import type { ModeName } from './helpers/modes.js'
import { sendRaw } from './helpers/raw.js'
import { openCallback, startLogin, startTestServer, type TestServer, type TestServerOptions } from './helpers/server.js'

const email = 'w.quellenbach@people.example'
const names = { given: 'Wilhelmina', family: 'Quellenbach', email, sub: 'subject-4711-0815' }
const accepts = ['application/json', 'text/html']

interface Run extends TestServer {
  readonly mode: ModeName
  readonly answers: BrowserResponse[]
  /** Every response to this browser and to its clones is recorded. */
  readonly person: Browser
  /** The routes that return or use a token in this mode. */
  readonly routes: readonly string[]
}

async function startRun(t: ExecutionContext, mode: ModeName, options: TestServerOptions = {}): Promise<Run> {
  const started = await startTestServer(t, { mode, ...options })
  const answers: BrowserResponse[] = []
  const routes = mode === 'dual' ? ['/api/auth/profile', '/api/auth/token'] : ['/api/auth/profile']
  return { ...started, mode, answers, person: recordAnswers(started.newBrowser(), answers), routes }
}

async function login(person: Browser, accept?: string): Promise<BrowserResponse> {
  const back = await startLogin(person)
  return accept ? person.navigate(back, { from: 'http://127.0.0.1', headers: { accept } }) : openCallback(person, back)
}

/** A fault in which the provider repeats the whole request and the correct response in its error response. */
const quoting = (status: number): Fault => {
  return exchange => {
    const { form, headers } = exchange.request
    const everything = JSON.stringify({ form, authorization: headers.authorization, answer: exchange.process() })
    const error = form.refresh_token ?? form.code ?? headers.authorization ?? form.token
    exchange.send({
      status,
      headers: { 'retry-after': everything.replaceAll(/[^ -~]/g, ''), 'www-authenticate': `Bearer error="${error}"` },
      body: { error, error_description: everything, error_uri: `https://idp.example/?${error}`, errorCode: error }
    })
  }
}

const everyFault = (elsewhere: string): Readonly<Record<string, Fault>> => ({
  'a cut connection': faults.reset('before'),
  'a lost response': faults.reset('after'),
  'half a response': faults.half(),
  'a server error': faults.status(500),
  'too many requests': faults.tooManyRequests(1),
  'a page': faults.html(),
  'a redirect': faults.redirect(elsewhere),
  'an empty response': faults.empty(),
  'broken JSON': faults.notJson(200, '{"access_token":"half-of-a-token-that-never'),
  'a giant response': faults.giant(1_200_000),
  'a refused grant': faults.error('invalid_grant'),
  'a refused client': faults.error('invalid_client', 401),
  'a refused scope': faults.error('invalid_scope'),
  'the gateway': faults.gateway(),
  'an error 400 that repeats the request': quoting(400),
  'an error 401 that repeats the request': quoting(401),
  'an error 503 that repeats the request': quoting(503),
  'an error with status 200': quoting(200),
  'a wider scope': faults.change({ scope: 'data:read viewables:read account:write' }),
  'an unknown token type': faults.change({ token_type: 'mac' }),
  'no refresh token': faults.change({ refresh_token: undefined }),
  'a token with a line break in it': faults.change(body => ({ ...body, access_token: `${body.access_token}\n` })),
  'a wrong ID token': faults.change(body => ({ ...body, id_token: `${body.id_token}.${body.refresh_token}` })),
  'a session too large for its cookies': faults.change({ refresh_token: randomBytes(20_000).toString('base64url') })
})

/** Successful use, in the ways in which users and pages use the server. */
async function useSuccessfully({ person, clock, routes }: Run): Promise<void> {
  await login(person)
  for (const accept of accepts) {
    for (const route of routes) await person.fetch(route, { headers: { accept } })
  }
  const oldTab = person.clone()
  clock.advanceSeconds(3600)
  await Promise.all(Array.from({ length: 20 }, () => person.fetch(routes.at(-1) ?? '')))
  clock.advanceSeconds(10)
  for (const route of routes) await oldTab.fetch(route)
  await login(person)
  await person.navigate('/api/auth/logout')
  await oldTab.fetch('/api/auth/profile')
}

async function deniedLogins({ person, idp }: Run): Promise<void> {
  for (const error of ['access_denied', 'server_error', 'temporarily_unavailable', 'invalid_scope', 'unheard_of']) {
    idp.settings.login = { error, errorDescription: `${names.given} ${names.family} said no` }
    for (const accept of accepts) await login(person, accept)
  }
  idp.settings.login = {}
}

async function failAtProvider(run: Run, elsewhere: string): Promise<void> {
  const { person, idp, clock, routes } = run
  for (const fault of Object.values(everyFault(elsewhere))) {
    // The fault meets the code exchange and, in dual mode, the refresh that follows it.
    for (const skipped of [0, 1]) {
      idp.fail('token', ...Array.from({ length: skipped }, () => faults.none), fault)
      await login(person, accepts[skipped])
      idp.heal()
    }
    await login(person)
    // The fault meets the first token request of a refresh, then its second.
    for (const skipped of [0, 1]) {
      for (const route of routes) {
        clock.advanceSeconds(4000)
        idp.fail('token', ...Array.from({ length: skipped }, () => faults.none), fault)
        await person.fetch(route, { headers: { accept: accepts[skipped] } })
        idp.heal()
        clock.advanceSeconds(120)
        await person.fetch(route)
      }
    }
    await login(person)
    idp.failWhen('userinfo', () => fault)
    for (const accept of accepts) await person.fetch('/api/auth/profile', { headers: { accept } })
    idp.heal()
    const revocations = idp.requestsTo('revoke').length
    idp.failWhen('revoke', () => fault)
    await person.navigate('/api/auth/logout')
    await eventually(() => idp.requestsTo('revoke').length > revocations)
    idp.heal()
  }
}

async function useWithoutProvider({ person, idp, clock, routes }: Run): Promise<void> {
  await login(person)
  clock.advanceSeconds(3600)
  const back = await startLogin(person)
  await idp.offline()
  for (const accept of accepts) {
    for (const route of routes) await person.fetch(route, { headers: { accept } })
    await person.navigate(back, { headers: { accept } })
    await person.navigate('/api/auth/login', { headers: { accept } })
  }
  await person.navigate('/api/auth/logout')
  await idp.online()
}

/** Requests of attackers, broken proxies and mistaken clients. */
async function sendStrangeRequests({ person, clock, recorder, origin }: Run): Promise<void> {
  const back = await startLogin(person)
  const [thief, victim] = [person.clone(), person.clone()]
  thief.cookies.clear()
  for (const accept of accepts) {
    const headers = { accept }
    await thief.navigate(back, { headers })
    await victim.navigate(back.replace(/state=[^&]{8}/, 'state=AAAAAAAA'), { headers })
    await victim.navigate(back.replace('code=', 'code=a&code='), { headers })
    await victim.navigate(`${back}&error=access_denied`, { headers })
    await victim.navigate(`${back}&iss=https://elsewhere.example`, { headers })
  }
  await openCallback(person, back)
  await openCallback(person, back)
  await openCallback(person.clone(), back)
  for (const path of [
    '/',
    '/nothing',
    '/%',
    '/api/auth',
    '/api/auth/token',
    '/healthz',
    '/readyz',
    '/api/auth/login?return_to=//evil'
  ]) {
    for (const accept of accepts) {
      for (const method of ['GET', 'HEAD', 'POST', 'TRACE']) await person.request(method, path, { headers: { accept } })
    }
  }
  for (const from of ['https://evil.example', 'http://other.localhost']) {
    for (const path of ['/api/auth/token', '/api/auth/profile']) await person.fetch(path, { from })
    await person.fetch('/api/auth/logout', { from, dest: 'image' })
  }
  const cookies = person.cookies.header(new URL(origin)) ?? ''
  const tampered = [
    cookies.replaceAll('A', 'B'),
    cookies.slice(0, -9),
    cookies.replace('platform_session=', 'platform_session.1='),
    `${cookies}; ${cookies}`
  ]
  for (const cookie of tampered) await person.get('/api/auth/profile', { headers: { cookie } })
  const sent = `Host: localhost\r\nCookie: ${cookies}\r\nAuthorization: Bearer ${cookies}\r\nReferer: ${back}\r\nUser-Agent: ${cookies}\r\n`
  for (const request of [
    `GET ${back.slice(origin.length)} HTTP/1.1\r\n${sent}Connection: close\r\n\r\n`,
    `POST ${back.slice(origin.length)} HTTP/1.1\r\n${sent}Content-Length: 5\r\nConnection: close\r\n\r\nhello`,
    `GET ${back} HTTP/1.1\r\n${sent}Content-Length: 5\r\n\r\nhello`,
    `GET / HTTP/1.1\r\n${sent}X-Filler: ${'x'.repeat(33_000)}\r\n\r\n`,
    `GET / HTTP/1.1\r\n${sent}Broken\r\n\r\n`
  ]) {
    await sendRaw(recorder.port, request)
  }
  clock.advanceSeconds(24 * 3600 + 1)
  await person.fetch('/api/auth/profile')
  clock.advanceSeconds(700)
  await openCallback(person, back)
}

/** Everything that the hostile provider issued, and the secrets of the deployment. */
function confidential({ idp, config }: Pick<Run, 'idp' | 'config'>): Confidential {
  const { session, platform } = config
  const scope = platform.publicTokenScopes.join(' ')
  const isPublic = config.mode === 'dual'
  return {
    nowhere: [
      ...idp.secrets(isPublic ? { except: scope } : {}),
      ...credentials(idp),
      session.secret,
      ...session.previousSecrets,
      names.email,
      names.sub
    ],
    publicTokens: isPublic
      ? idp.issued.accessTokens.filter(token => token.scope === scope).map(({ value }) => value)
      : [],
    names: [names.given, names.family]
  }
}

function credentials({ clientId, clientSecret }: Pick<HostileIdp, 'clientId' | 'clientSecret'>): string[] {
  return [clientSecret, Buffer.from(`${clientId}:${clientSecret}`).toString('base64')]
}

function outputOf({ recorder, logs, answers }: Pick<Run, 'recorder' | 'logs' | 'answers'>) {
  return { bytes: recorder.sent(), logLines: logs.lines, answers }
}

const hostileRuns: readonly { readonly mode: ModeName; readonly options: TestServerOptions; readonly what: string }[] =
  [
    { mode: 'single', what: 'with default settings', options: {} },
    { mode: 'dual', what: 'with default settings', options: {} },
    {
      mode: 'dual',
      what: 'with ID tokens, a refresh margin, credentials in the body and a previous session secret',
      options: {
        settings: {
          platform: {
            internalTokenScopes: ['openid', 'data:read', 'viewables:read'],
            clientAuthMethod: 'client_secret_post'
          },
          session: { previousSecrets: ['a-session-secret-of-last-year-kT5mZq8Rw2'] },
          refresh: { beforeExpiry: 120 },
          log: { trustForwardedFor: 1 }
        }
      }
    }
  ]

for (const { mode, what, options } of hostileRuns) {
  test(`${mode} mode ${what}, at a hostile provider: no response and no log line contains a confidential string`, async t => {
    const run = await startRun(t, mode, options)
    const { idp, logs, answers } = run
    const profile = { sub: names.sub, email: names.email, given_name: names.given, family_name: names.family }
    idp.settings.profile = { ...profile, name: `${names.given} ${names.family}` }
    await useSuccessfully(run)
    await deniedLogins(run)
    const elsewhere = await createHostileIdp(t)
    await failAtProvider(run, elsewhere.userinfoEndpoint)
    await useWithoutProvider(run)
    await sendStrangeRequests(run)
    await useSuccessfully(run)

    // Shows that all parts of the run really happened.
    const { issued } = idp
    t.true(issued.codes.length > 50 && issued.refreshTokens.length > 100 && issued.codeVerifiers.length > 50)
    const statuses = new Set(answers.map(({ statusCode }) => statusCode))
    for (const status of [200, 302, 400, 401, 403, 404, 405, 500, 502, 503, 504])
      t.true(statuses.has(status), String(status))
    const events = [
      'login_started',
      'login_succeeded',
      'login_failed',
      'refresh_succeeded',
      'refresh_failed',
      'logout_succeeded',
      'refresh_token_revoked',
      'revocation_failed',
      'request_failed',
      'client_error'
    ]
    for (const event of events) t.truthy(logs.first(event), event)
    const secrets = confidential(run)
    t.true(secrets.nowhere.every(secret => secret.length >= 8))
    t.is(secrets.publicTokens.length > 50, mode === 'dual')

    t.deepEqual(findLeaks(outputOf(run), secrets), [])
    t.is(elsewhere.connections, 0, 'the server followed no redirect of the provider')
    for (const answer of answers.filter(({ url }) => url.origin === run.origin)) assertHeaders(t, answer)
    for (const { event, time, request_id } of logs.entries.filter(entry => events.includes(String(entry.event)))) {
      t.regex(String(time), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
      if (event !== 'client_error') t.regex(String(request_id), /^[\w-]{36}$/, String(event))
    }
  })
}

/** Checks the rules that hold for every response. */
function assertHeaders(t: ExecutionContext, { url, statusCode, headers, setCookies }: BrowserResponse): void {
  const what = `${statusCode} ${url.pathname}`
  t.is(headers['x-content-type-options'], 'nosniff', what)
  if (setCookies.length > 0) t.is(headers['cache-control'], 'no-store', what)
  const unwanted = Object.keys(headers).filter(name => /^(server|x-powered-by|access-control-.*)$/.test(name))
  t.deepEqual(unwanted, [], what)
}
