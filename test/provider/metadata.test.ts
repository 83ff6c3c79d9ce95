import test from 'ava'
import type { TransportResponse } from '#src/provider/attempt.js'
import { APS, createMetadata } from '#src/provider/metadata.js'
import { type Endpoint, ProviderError } from '#src/provider/provider-error.js'
import { quirksOf } from '#src/provider/quirks.js'
import { answering, responseWith } from './answering.js'

type Platform = Parameters<typeof createMetadata>[0]

const issuer = 'https://idp.example/tenant'
const nothingConfigured: Platform = {
  issuer: undefined,
  authorizationEndpoint: undefined,
  tokenEndpoint: undefined,
  userinfoEndpoint: undefined,
  revocationEndpoint: undefined,
  endSessionEndpoint: undefined,
  timeoutSeconds: 10
}
const discovering = { ...nothingConfigured, issuer }
const document = {
  issuer,
  authorization_endpoint: 'https://idp.example/authorize',
  token_endpoint: 'https://idp.example/token',
  userinfo_endpoint: 'https://idp.example/userinfo',
  revocation_endpoint: 'https://idp.example/revoke',
  end_session_endpoint: 'https://idp.example/logout',
  authorization_response_iss_parameter_supported: true
}

const withoutDocument = { jwksUri: undefined, issParameterSupported: false, scopesSupported: undefined, unusable: [] }

/** A transport that returns the documents one after the other. */
const returning = (...documents: [unknown, ...unknown[]]) =>
  answering(...(documents.map(json => responseWith(200, json)) as [TransportResponse, ...TransportResponse[]]))

/** The metadata according to the document with these changes. */
const withChanges = (changes: object, platform: Platform = discovering) =>
  createMetadata(platform, returning({ ...document, ...changes }))()

test('without settings the endpoints are those of APS, and configured endpoints replace them, without a discovery request', async t => {
  const transport = returning(document)
  const quirks = quirksOf({ tokenEndpoint: APS.tokenEndpoint })
  t.deepEqual(await createMetadata(nothingConfigured, transport)(), { ...APS, ...withoutDocument, quirks })
  const urls = {
    issuer: undefined,
    authorizationEndpoint: 'https://own.example/authorize',
    tokenEndpoint: 'https://own.example/token',
    userinfoEndpoint: 'https://own.example/userinfo',
    revocationEndpoint: 'https://own.example/revoke',
    endSessionEndpoint: 'https://own.example/logout'
  }
  const own = { ...nothingConfigured, ...urls }
  t.deepEqual(await createMetadata(own, transport)(), { ...urls, ...withoutDocument, quirks: {} })
  const ofAps = { ...own, authorizationEndpoint: APS.authorizationEndpoint }
  t.is((await createMetadata(ofAps, transport)()).issuer, APS.issuer, 'a configured endpoint of APS keeps its issuer')
  t.is(transport.requests.length, 0)
})

test('the value none switches off the endpoints for user info, revocation and end of session', async t => {
  for (const issuer of [undefined, document.issuer]) {
    const off = { userinfoEndpoint: 'none', revocationEndpoint: 'none', endSessionEndpoint: 'none' }
    const platform = { ...nothingConfigured, issuer, ...off }
    const metadata = await createMetadata(platform, returning(document))()
    t.like(metadata, { userinfoEndpoint: undefined, revocationEndpoint: undefined, endSessionEndpoint: undefined })
    t.not(metadata.tokenEndpoint, undefined)
  }
})

test('the endpoints of a configured issuer come from its discovery document, whose path has no double slash', async t => {
  const transport = returning(document)
  t.deepEqual(await createMetadata(discovering, transport)(), {
    issuer,
    authorizationEndpoint: document.authorization_endpoint,
    tokenEndpoint: document.token_endpoint,
    userinfoEndpoint: document.userinfo_endpoint,
    revocationEndpoint: document.revocation_endpoint,
    endSessionEndpoint: document.end_session_endpoint,
    ...withoutDocument,
    issParameterSupported: true,
    quirks: quirksOf({})
  })
  const url = 'https://idp.example/tenant/.well-known/openid-configuration'
  t.like(transport.requests[0], { endpoint: 'discovery', url })
  const withSlash = returning({ ...document, issuer: 'https://idp.example/' })
  await createMetadata({ ...nothingConfigured, issuer: 'https://idp.example/' }, withSlash)()
  t.is(withSlash.requests[0]?.url, 'https://idp.example/.well-known/openid-configuration')
})

test('the discovery document is requested at the first use, and only once for all uses', async t => {
  const transport = returning(document)
  const metadata = createMetadata(discovering, transport)
  t.is(transport.requests.length, 0)
  const [one, two] = await Promise.all([metadata(), metadata(), metadata()])
  t.is(one, two)
  t.is(await metadata(), one)
  t.is(transport.requests.length, 1)
})

test('if discovery fails, all waiting callers get the error, and the next caller requests the document again', async t => {
  const outage = new ProviderError('discovery', 'unreachable', 'connection failed')
  const wrong = responseWith(200, { issuer: 'https://wrong.example' })
  const transport = answering(outage, responseWith(503), wrong, responseWith(200, document))
  const metadata = createMetadata(discovering, transport)
  const failures = [t.throwsAsync(metadata()), t.throwsAsync(metadata())]
  for (const failure of failures) t.is(await failure, outage)
  t.is(transport.requests.length, 1)
  await t.throwsAsync(metadata(), { instanceOf: ProviderError, message: /503/ })
  await t.throwsAsync(metadata(), { instanceOf: ProviderError, message: /its issuer is "https:\/\/wrong.example"/ })
  for (let calls = 1; calls <= 2; calls++) t.is((await metadata()).tokenEndpoint, document.token_endpoint)
  t.is(transport.requests.length, 4)
})

for (const [other, detail] of [
  ['https://evil.example', `its issuer is "https://evil.example", but "${issuer}" is configured`],
  [`${issuer}/`, `its issuer is "${issuer}/", but "${issuer}" is configured (only the slash at the end differs)`],
  ['https://u:hunter2@a.example\nx', `its issuer is "https://***@a.example…", but "${issuer}" is configured`],
  [undefined, 'it has no issuer'],
  [null, 'it has no issuer'],
  [[issuer], 'it has no issuer']
] as const) {
  test(`a discovery document with the issuer ${JSON.stringify(other)} is rejected`, async t => {
    const error = await t.throwsAsync(withChanges({ issuer: other }), { instanceOf: ProviderError })
    t.is(error?.problem, 'invalid_response')
    t.true(error?.message.endsWith(detail), error?.message)
  })
}

test('a discovery document that is no JSON object is rejected, and so is a response with another status', async t => {
  for (const json of [undefined, null, 'text', 5, []]) {
    await t.throwsAsync(createMetadata(discovering, returning(json))(), { instanceOf: ProviderError })
  }
  for (const status of [204, 301, 302, 404, 500]) {
    const failing = createMetadata(discovering, answering(responseWith(status, document)))()
    t.is((await t.throwsAsync(failing, { instanceOf: ProviderError }))?.status, status)
  }
})

const required = { authorization_endpoint: 'authorizationEndpoint', token_endpoint: 'tokenEndpoint' } as const
const optional = {
  userinfo_endpoint: 'userinfoEndpoint',
  revocation_endpoint: 'revocationEndpoint',
  end_session_endpoint: 'endSessionEndpoint',
  jwks_uri: 'jwksUri'
} as const
const unsafe = [
  'http://idp.example/x',
  'http://127.0.0.1.evil.example/x',
  'http://127.0.0.1:6379/x',
  'http://localhost/x',
  'http://[::1]/x',
  'https://user@idp.example/x',
  'https://user:password@idp.example/x',
  'https://idp.example/x#fragment',
  'https://idp.example\\x',
  ' https://idp.example/x',
  'ftp://idp.example/x',
  'javascript:x',
  '/x',
  '',
  5,
  []
]

for (const [member, name] of Object.entries(required)) {
  test(`a discovery document whose ${member} is missing or unsafe for secrets is rejected, unless it is configured`, async t => {
    for (const url of [undefined, ...unsafe]) {
      const rejected = { instanceOf: ProviderError, message: new RegExp(member) }
      await t.throwsAsync(withChanges({ [member]: url }), rejected, String(url))
    }
    const own = 'https://own.example/endpoint'
    t.is((await withChanges({ [member]: undefined }, { ...discovering, [name]: own }))[name], own)
  })
}

for (const [member, name] of Object.entries(optional)) {
  test(`a discovery document works without ${member}, and an unusable one is reported once`, async t => {
    t.is((await withChanges({ [member]: undefined }))[name], undefined)
    for (const url of [...unsafe, null]) {
      const reported: string[] = []
      const transport = returning({ ...document, jwks_uri: 'https://idp.example/jwks', [member]: url })
      const getMetadata = createMetadata(discovering, transport, {
        report: (_event, problem) => reported.push(problem)
      })
      const found = await getMetadata()
      t.is(await getMetadata(), found)
      t.is(found[name], undefined, String(url))
      t.is(found.tokenEndpoint, document.token_endpoint)
      t.is(reported.length, 1)
      t.regex(reported[0] ?? '', new RegExp(member))
    }
  })
}

test('a configured endpoint takes precedence over the document, and a member of the document that is missing is off', async t => {
  const revocationEndpoint = 'https://own.example/revoke'
  const changed = await withChanges(
    { authorization_response_iss_parameter_supported: undefined },
    { ...discovering, revocationEndpoint }
  )
  t.like(changed, {
    revocationEndpoint,
    endSessionEndpoint: document.end_session_endpoint,
    issParameterSupported: false
  })
})

/** A transport that redirects to these URLs, one after the other, and then returns the document. */
function redirecting(...locations: [string, ...string[]]) {
  const [first, ...others] = locations.map(location => ({ ...responseWith(303), location }))
  return answering(first as TransportResponse, ...others, responseWith(200, document))
}

test('redirects of the discovery request are followed on https, at most three times, within one time limit', async t => {
  const three = redirecting('https://cdn.example/a', '/b', 'https://idp.example/c')
  t.is((await createMetadata(discovering, three)()).tokenEndpoint, document.token_endpoint)
  t.deepEqual(three.requests.map(({ url }) => url).slice(1), [
    'https://cdn.example/a',
    'https://cdn.example/b',
    'https://idp.example/c'
  ])
  t.true(three.requests.every(({ headers, form, timeoutMs = 0 }) => !headers && !form && timeoutMs <= 10_000))
  const four = redirecting('/a', '/b', '/c', '/d')
  await t.throwsAsync(createMetadata(discovering, four)(), { instanceOf: ProviderError, message: /303/ })
  t.is(four.requests.length, 4)
})

for (const location of [
  'http://idp.example/x',
  'http://127.0.0.1:6379/',
  'http://169.254.169.254/',
  'ftp://a/',
  'https://u@a/'
]) {
  test(`a redirect of the discovery request to ${location} is not followed`, async t => {
    const transport = redirecting(location)
    const failing = createMetadata(discovering, transport)()
    await t.throwsAsync(failing, { instanceOf: ProviderError, message: /redirects to a URL that cannot be used/ })
    t.is(transport.requests.length, 1)
  })
}

test('an issuer on this machine may have plain http endpoints on this machine', async t => {
  const here = 'http://localhost:8081'
  for (const address of ['http://127.0.0.1:8082/x', 'http://localhost:8081/x', 'http://[::1]/x']) {
    const named = Object.fromEntries(Object.keys({ ...required, ...optional }).map(member => [member, address]))
    const metadata = await withChanges({ ...named, issuer: here }, { ...nothingConfigured, issuer: here })
    t.is(metadata.tokenEndpoint, address)
    t.is(metadata.revocationEndpoint, address)
  }
})

test('the error about a rejected endpoint contains the name of the endpoint and the reason, but not its URL', async t => {
  for (const [url, reason] of [
    ['http://localhost/x', 'it uses plain http and names this machine, but the issuer is on another machine'],
    ['https://user:password@idp.example/x', 'it contains a user name']
  ] as const) {
    const { message = '' } = (await t.throwsAsync(withChanges({ token_endpoint: url }))) ?? {}
    t.true(message.endsWith(`its token_endpoint cannot be used: ${reason}`), message)
  }
})

test('the supported scopes come from the discovery document, and malformed values are ignored', async t => {
  const scopesIn = async (scopes_supported: unknown) => (await withChanges({ scopes_supported })).scopesSupported
  t.deepEqual(await scopesIn(['openid', 'offline_access']), ['openid', 'offline_access'])
  t.deepEqual(await scopesIn(['openid', 5, null]), ['openid'])
  for (const malformed of ['openid', undefined]) t.is(await scopesIn(malformed), undefined)
})

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Metadata whose document changes, with a clock. */
function moving() {
  let served: unknown = { ...document, jwks_uri: 'https://idp.example/keys' }
  let now = 1_700_000_000_000
  const warnings: string[] = []
  let reads = 0
  const transport = {
    async call() {
      reads++
      return responseWith(served === undefined ? 503 : 200, served)
    }
  }
  const metadata = createMetadata(discovering, transport, {
    now: () => now,
    report: ({ event }, problem) => warnings.push(`${event} ${problem}`)
  })
  return {
    warnings,
    reads: () => reads,
    serve(changes: object | undefined) {
      served = changes && { ...document, jwks_uri: 'https://idp.example/keys', ...changes }
    },
    /** Lets time pass and then a request to an endpoint end. Returns the metadata after the reading in the background. */
    async after(ms: number, endpoint?: Endpoint, fails = true) {
      now += ms
      if (endpoint) metadata.noteRequest(endpoint, fails)
      await metadata()
      await new Promise(setImmediate)
      return metadata()
    }
  }
}

test('the discovery document is read again in the background once a day, and at most once a minute if an endpoint may have moved', async t => {
  const { after, reads, serve } = moving()
  await after(0)
  await after(21 * HOUR)
  t.is(reads(), 1)
  serve({ token_endpoint: 'https://idp.example/new' })
  t.is((await after(6 * HOUR)).tokenEndpoint, 'https://idp.example/new')
  await after(1)
  t.is(reads(), 2)
  await after(MINUTE, 'revocation', false)
  t.is(reads(), 2)
  for (const endpoint of ['token', 'userinfo', 'revocation', 'jwks'] as const) {
    const before = reads()
    await after(MINUTE, endpoint)
    t.is(reads(), before + 1, endpoint)
    await after(MINUTE - 1, endpoint)
    t.is(reads(), before + 1, `${endpoint} again`)
  }
  await after(MINUTE, 'discovery')
  t.is(reads(), 6)
})

test('a moved endpoint on a known host counts at once, also the keys', async t => {
  const { after, serve, warnings } = moving()
  await after(0)
  serve({ token_endpoint: 'https://idp.example/v2/token', jwks_uri: 'https://idp.example/v2/keys' })
  t.like(await after(2 * MINUTE, 'token'), {
    tokenEndpoint: 'https://idp.example/v2/token',
    jwksUri: 'https://idp.example/v2/keys'
  })
  t.deepEqual(warnings, [])
})

for (const [what, changes] of [
  ['is unavailable', undefined],
  ['has another issuer', { issuer: 'https://evil.example' }],
  ['is incomplete', { token_endpoint: undefined }],
  ['has a token endpoint that cannot be used', { token_endpoint: 'http://idp.example/token' }]
] as const) {
  test(`the earlier document still counts if the new one ${what}, and is read again a minute later`, async t => {
    const { after, serve, reads } = moving()
    const first = await after(0)
    serve(changes)
    t.is(await after(MINUTE, 'token'), first)
    serve({ token_endpoint: 'https://idp.example/new' })
    t.is(await after(MINUTE - 1, 'token'), first)
    t.is((await after(1, 'token')).tokenEndpoint, 'https://idp.example/new')
    t.is(reads(), 3)
  })
}

const elsewhere = { token_endpoint: 'https://new.example/token' }
const moved = /names the token endpoint https:\/\/new\.example\/token in place of https:\/\/idp\.example\/token/

test('a token endpoint on another host counts when the old one fails and two readings 10 minutes apart agree', async t => {
  const { after, serve, warnings } = moving()
  await after(0)
  serve(elsewhere)
  for (let minute = 1; minute <= 10; minute++) {
    t.is((await after(MINUTE, 'token')).tokenEndpoint, document.token_endpoint, `minute ${minute}`)
  }
  t.is((await after(MINUTE, 'token')).tokenEndpoint, elsewhere.token_endpoint)
  t.is(warnings.length, 2)
  for (const warning of warnings) t.regex(warning, moved)
})

test('a token endpoint on another host does not count while the old one works, or if the readings do not agree', async t => {
  const { after, serve } = moving()
  await after(0)
  serve(elsewhere)
  for (let minute = 1; minute <= 30; minute++) {
    await after(MINUTE, 'token', false)
    t.is((await after(0, 'userinfo')).tokenEndpoint, document.token_endpoint)
  }
  for (let minute = 1; minute <= 30; minute++) {
    serve({ token_endpoint: `https://new.example/${minute % 8}` })
    t.is((await after(MINUTE, 'token')).tokenEndpoint, document.token_endpoint)
  }
})

for (const [name, key] of [
  ['revocation_endpoint', 'revocationEndpoint'],
  ['userinfo_endpoint', 'userinfoEndpoint'],
  ['authorization_endpoint', 'authorizationEndpoint'],
  ['jwks_uri', 'jwksUri']
] as const) {
  test(`one reading does not send tokens or users to another host: ${name}`, async t => {
    const { after, serve } = moving()
    const { [key]: first } = await after(0)
    serve({ [name]: 'https://new.example/x' })
    t.is((await after(MINUTE, 'userinfo'))[key], first)
    t.is((await after(10 * MINUTE, 'userinfo'))[key], 'https://new.example/x')
  })
}

test('an endpoint that the new document lacks is kept until a second reading lacks it as well', async t => {
  const { after, serve } = moving()
  await after(0)
  serve({ revocation_endpoint: undefined })
  t.is((await after(MINUTE, 'revocation')).revocationEndpoint, document.revocation_endpoint)
  t.is((await after(10 * MINUTE, 'revocation')).revocationEndpoint, undefined)
})
