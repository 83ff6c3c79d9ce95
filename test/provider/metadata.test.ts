import test from 'ava'
import type { TransportResponse } from '#src/provider/attempt.js'
import { APS, createMetadata } from '#src/provider/metadata.js'
import { ProviderError } from '#src/provider/provider-error.js'
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
      const getMetadata = createMetadata(discovering, transport, problem => reported.push(problem))
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
