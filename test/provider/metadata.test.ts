import test from 'ava'
import type { TransportRequest, TransportResponse } from '#src/provider/attempt.js'
import { ProviderError } from '#src/provider/errors.js'
import { APS, createMetadata } from '#src/provider/metadata.js'
import { quirksOf } from '#src/provider/quirks.js'

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

/** A transport that returns the responses one after the other, and then the last response again and again. */
function answering(...answers: [unknown, ...unknown[]]) {
  const requests: TransportRequest[] = []
  return {
    requests,
    async call(request: TransportRequest): Promise<TransportResponse> {
      const answer = answers[Math.min(requests.length, answers.length - 1)]
      requests.push(request)
      if (answer instanceof Error) throw answer
      const [status, json] = typeof answer === 'number' ? [answer, undefined] : [200, answer]
      const rest = { retryAfterSeconds: undefined, date: undefined, location: undefined, setCookies: [], durationMs: 1 }
      return { status, json, ...rest }
    }
  }
}

test('without settings the endpoints are those of APS without a discovery request, and a configured endpoint of APS keeps its issuer', async t => {
  const transport = answering(document)
  const quirks = quirksOf({ tokenEndpoint: APS.tokenEndpoint })
  t.deepEqual(await createMetadata(nothingConfigured, transport)(), { ...APS, ...withoutDocument, quirks })
  t.is(transport.requests.length, 0)
  const own = { ...nothingConfigured, authorizationEndpoint: APS.authorizationEndpoint }
  t.is((await createMetadata(own, answering(document))()).issuer, APS.issuer)
})

test('configured endpoints replace those of APS, and the issuer is then unknown', async t => {
  const own = {
    ...nothingConfigured,
    authorizationEndpoint: 'https://own.example/authorize',
    tokenEndpoint: 'https://own.example/token',
    userinfoEndpoint: 'https://own.example/userinfo',
    revocationEndpoint: 'https://own.example/revoke',
    endSessionEndpoint: 'https://own.example/logout'
  }
  const transport = answering(document)
  const { timeoutSeconds, ...urls } = own
  t.deepEqual(await createMetadata(own, transport)(), { ...urls, ...withoutDocument, quirks: {} })
  t.is(transport.requests.length, 0)
})

test('the value none switches off the endpoints for user info, revocation and end of session', async t => {
  for (const issuer of [undefined, document.issuer]) {
    const off = { userinfoEndpoint: 'none', revocationEndpoint: 'none', endSessionEndpoint: 'none' }
    const platform = { ...nothingConfigured, issuer, ...off }
    const metadata = await createMetadata(platform, answering(document))()
    t.is(metadata.userinfoEndpoint, undefined)
    t.is(metadata.revocationEndpoint, undefined)
    t.is(metadata.endSessionEndpoint, undefined)
    t.not(metadata.tokenEndpoint, undefined)
  }
})

test('the endpoints of a configured issuer come from its discovery document, whose path has no double slash', async t => {
  const transport = answering(document)
  t.deepEqual(await createMetadata(discovering, transport)(), {
    issuer,
    authorizationEndpoint: document.authorization_endpoint,
    tokenEndpoint: document.token_endpoint,
    userinfoEndpoint: document.userinfo_endpoint,
    revocationEndpoint: document.revocation_endpoint,
    endSessionEndpoint: document.end_session_endpoint,
    jwksUri: undefined,
    issParameterSupported: true,
    scopesSupported: undefined,
    unusable: [],
    quirks: quirksOf({})
  })
  const url = 'https://idp.example/tenant/.well-known/openid-configuration'
  t.like(transport.requests[0], { endpoint: 'discovery', url })
  const withSlash = answering({ ...document, issuer: 'https://idp.example/' })
  await createMetadata({ ...nothingConfigured, issuer: 'https://idp.example/' }, withSlash)()
  t.is(withSlash.requests[0]?.url, 'https://idp.example/.well-known/openid-configuration')
})

test('the discovery document is requested at the first use, and only once for all uses', async t => {
  const transport = answering(document)
  const metadata = createMetadata(discovering, transport)
  t.is(transport.requests.length, 0)
  const [one, two] = await Promise.all([metadata(), metadata(), metadata()])
  t.is(one, two)
  t.is(await metadata(), one)
  t.is(transport.requests.length, 1)
})

test('if discovery fails, all waiting callers get the error, and the next caller requests the document again', async t => {
  const outage = new ProviderError('discovery', 'unreachable', 'connection failed')
  const transport = answering(outage, 503, { issuer: 'https://wrong.example' }, document)
  const metadata = createMetadata(discovering, transport)
  const failures = [t.throwsAsync(metadata()), t.throwsAsync(metadata())]
  for (const failure of failures) t.is(await failure, outage)
  t.is(transport.requests.length, 1)
  await t.throwsAsync(metadata(), { instanceOf: ProviderError, message: /503/ })
  await t.throwsAsync(metadata(), { instanceOf: ProviderError, message: /its issuer is "https:\/\/wrong.example"/ })
  t.is((await metadata()).tokenEndpoint, document.token_endpoint)
  t.is((await metadata()).tokenEndpoint, document.token_endpoint)
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
    const failing = createMetadata(discovering, answering({ ...document, issuer: other }))()
    const error = await t.throwsAsync(failing, { instanceOf: ProviderError })
    t.is(error?.problem, 'invalid_response')
    t.is(error?.message, `the identity provider's discovery endpoint: ${detail}`)
  })
}

for (const answer of [undefined, null, 'text', 5, []]) {
  test(`a discovery document that is ${JSON.stringify(answer)} is rejected`, async t => {
    await t.throwsAsync(createMetadata(discovering, answering(answer))(), { instanceOf: ProviderError })
  })
}

for (const status of [204, 301, 302, 404, 500]) {
  test(`a discovery response with the status ${status} is rejected`, async t => {
    const error = await t.throwsAsync(createMetadata(discovering, answering(status))(), { instanceOf: ProviderError })
    t.is(error?.status, status)
  })
}

const required = ['authorization_endpoint', 'token_endpoint'] as const
const configuredName = { authorization_endpoint: 'authorizationEndpoint', token_endpoint: 'tokenEndpoint' } as const

for (const member of required) {
  test(`a discovery document without ${member} is rejected by name, unless this endpoint is configured`, async t => {
    const { [member]: _, ...rest } = document
    const failing = createMetadata(discovering, answering(rest))()
    await t.throwsAsync(failing, { instanceOf: ProviderError, message: new RegExp(`no ${member}`) })
    const name = configuredName[member]
    const configured = { ...discovering, [name]: 'https://own.example/endpoint' }
    t.is((await createMetadata(configured, answering(rest))())[name], 'https://own.example/endpoint')
  })
}

test('an endpoint that is missing from the discovery document is switched off, and a configured one takes precedence over the document', async t => {
  const { authorization_endpoint, token_endpoint } = document
  const metadata = await createMetadata(discovering, answering({ issuer, authorization_endpoint, token_endpoint }))()
  t.is(metadata.userinfoEndpoint, undefined)
  t.is(metadata.revocationEndpoint, undefined)
  t.is(metadata.endSessionEndpoint, undefined)
  t.false(metadata.issParameterSupported)
  const configured = { ...discovering, revocationEndpoint: 'https://own.example/revoke' }
  const changed = await createMetadata(configured, answering(document))()
  t.is(changed.revocationEndpoint, 'https://own.example/revoke')
  t.is(changed.endSessionEndpoint, document.end_session_endpoint)
})

const optional = ['userinfo_endpoint', 'revocation_endpoint', 'end_session_endpoint', 'jwks_uri'] as const
const optionalNames = {
  userinfo_endpoint: 'userinfoEndpoint',
  revocation_endpoint: 'revocationEndpoint',
  end_session_endpoint: 'endSessionEndpoint',
  jwks_uri: 'jwksUri'
} as const
const endpoints = [...required, ...optional]
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

for (const member of required) {
  test(`a discovery document is rejected if sending secrets to its ${member} would be unsafe`, async t => {
    for (const address of unsafe) {
      const failing = createMetadata(discovering, answering({ ...document, [member]: address }))()
      await t.throwsAsync(failing, { instanceOf: ProviderError, message: new RegExp(member) }, String(address))
    }
  })
}

for (const member of optional) {
  test(`a discovery document whose ${member} is unusable works without this endpoint, and reports it once`, async t => {
    for (const address of [...unsafe, null]) {
      const reported: string[] = []
      const transport = answering({ ...document, jwks_uri: 'https://idp.example/jwks', [member]: address })
      const getMetadata = createMetadata(discovering, transport, problem => reported.push(problem))
      const found = await getMetadata()
      t.is(await getMetadata(), found)
      t.is(found[optionalNames[member]], undefined, String(address))
      t.is(found.tokenEndpoint, document.token_endpoint)
      t.is(reported.length, 1)
      t.regex(reported[0] ?? '', new RegExp(member))
    }
  })
}

/** A transport that redirects to these URLs, one after the other, and then returns the document. */
function redirecting(...locations: readonly string[]) {
  const requests: TransportRequest[] = []
  const none = { retryAfterSeconds: undefined, date: undefined, location: undefined, setCookies: [], durationMs: 1 }
  return {
    requests,
    async call(request: TransportRequest): Promise<TransportResponse> {
      const location = locations[requests.length]
      requests.push(request)
      if (location === undefined) return { ...none, status: 200, json: document }
      return { ...none, json: undefined, status: 303, location }
    }
  }
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
    const named = Object.fromEntries(endpoints.map(member => [member, address]))
    const transport = answering({ ...document, ...named, issuer: here })
    const metadata = await createMetadata({ ...nothingConfigured, issuer: here }, transport)()
    t.is(metadata.tokenEndpoint, address)
    t.is(metadata.revocationEndpoint, address)
  }
})

test('the error about a rejected endpoint contains the name of the endpoint and the reason, but not its URL', async t => {
  for (const [address, reason] of [
    ['http://localhost/x', 'it uses plain http and names this machine, but the issuer is on another machine'],
    ['https://user:password@idp.example/x', 'it contains a user name']
  ] as const) {
    const failing = createMetadata(discovering, answering({ ...document, token_endpoint: address }))()
    const message = `the identity provider's discovery endpoint: its token_endpoint cannot be used: ${reason}`
    await t.throwsAsync(failing, { message })
  }
})

test('the supported scopes come from the discovery document, and malformed values are ignored', async t => {
  const cases: readonly (readonly [scopes_supported: unknown, expected: readonly string[] | undefined])[] = [
    [
      ['openid', 'offline_access'],
      ['openid', 'offline_access']
    ],
    [['openid', 5, null], ['openid']],
    ['openid', undefined],
    [undefined, undefined]
  ]
  for (const [scopes_supported, expected] of cases) {
    const metadata = await createMetadata(discovering, answering({ ...document, scopes_supported }))()
    t.deepEqual(metadata.scopesSupported, expected)
  }
})
