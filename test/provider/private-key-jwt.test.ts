/// <reference path="../../src/demo/oidc-provider.d.ts" />
// private_key_jwt with oidc-provider, which is certified for OpenID Connect and checks each assertion strictly.
import type { KeyObject } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import http from 'node:http'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { ClientMetadata, KoaContextWithOIDC } from 'oidc-provider'
import { Provider } from 'oidc-provider/lib/provider.js'
import type { KeyAlgorithm } from '#src/config/types/client-key.js'
import { createStore } from '#src/demo/provider.js'
import { createIdentityProvider } from '#src/provider/client.js'
import { OAuthError } from '#src/provider/provider-error.js'
import { createTransport } from '#src/provider/transport.js'
import { check, isGolden } from '../cli/check/checked.js'
import { sessionSecret } from '../config/given.js'
import { createBrowser } from '../helpers/browser.js'
import { jwkOf, newKey, pemOf, publicJwkOf } from '../helpers/client-keys.js'
import { defaultCallbackUrl, discovered, publicOrigin, testConfig, unreachableIdp } from '../helpers/config.js'
import { listen } from '../helpers/ports.js'
import { commandWithMovableClock, startProgram } from '../helpers/program.js'
import { tempFolder } from '../helpers/temp-folder.js'

// To make an RSA key can take a second of processor time. The second one is also the key of the provider.
const [right, wrong] = [newKey('RS256'), newKey('RS256')]
const providerKey = { ...wrong.export({ format: 'jwk' }), use: 'sig' }

const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const

/** Starts a provider in which everyone is signed in as the same user. It keeps the assertions of successful token requests. */
async function startProvider(t: ExecutionContext, clients: readonly ClientMetadata[]) {
  const server = http.createServer()
  const issuer = `http://127.0.0.1:${await listen(t, server)}`
  const provider = new Provider(issuer, {
    // Without a custom store and a custom key, the provider prints warnings.
    adapter: createStore(Date.now),
    jwks: { keys: [providerKey] },
    clients: [...clients],
    clientAuthMethods: ['private_key_jwt'],
    enabledJWA: { clientAuthSigningAlgValues: [...algorithms] },
    features: { devInteractions: { enabled: false }, revocation: { enabled: true } },
    interactions: { url: () => '/sign-in' },
    issueRefreshToken: () => true,
    expiresWithSession: () => false,
    rotateRefreshToken: true,
    scopes: ['openid'],
    ttl: { AccessToken: 600, RefreshToken: 60_000, Grant: 60_000, Interaction: 600, Session: 600, IdToken: 60_000 },
    // The clock of the server is ahead after a test has moved it.
    clockTolerance: 10_000,
    findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) })
  })
  const assertions: string[] = []
  provider.on('grant.success', (ctx: KoaContextWithOIDC) => assertions.push(String(ctx.oidc.params?.client_assertion)))
  const handle = provider.callback()
  server.on('request', async (request, response) => {
    if (request.url !== '/sign-in') return handle(request, response)
    const { params } = await provider.interactionDetails(request, response)
    const grant = new provider.Grant({ accountId: 'ada', clientId: String(params.client_id) })
    grant.addOIDCScope('openid')
    const result = { login: { accountId: 'ada' }, consent: { grantId: await grant.save() } }
    return provider.interactionFinished(request, response, result)
  })
  return { issuer, assertions }
}

function clientWith(id: string, algorithm: KeyAlgorithm, ...keys: readonly (readonly [KeyObject, string])[]) {
  return {
    client_id: id,
    token_endpoint_auth_method: 'private_key_jwt' as const,
    token_endpoint_auth_signing_alg: algorithm,
    redirect_uris: [defaultCallbackUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    jwks: { keys: keys.map(([key, kid]) => publicJwkOf(key, { kid, use: 'sig' })) }
  } as ClientMetadata
}

/** The variables of a server that authenticates with a key. */
function environmentFor(issuer: string) {
  return {
    PLATFORM_AUTH_MODE: 'single',
    PLATFORM_ISSUER: issuer,
    PLATFORM_SCOPES: 'openid',
    PLATFORM_CALLBACK_URL: defaultCallbackUrl,
    PLATFORM_CLIENT_ID: 'app',
    PLATFORM_CLIENT_AUTH_METHOD: 'private_key_jwt',
    SERVER_SESSION_SECRET: sessionSecret
  }
}

/** The part of an assertion with this position, decoded. */
function partOf(assertion: string | undefined, index: 0 | 1): Record<string, unknown> {
  return JSON.parse(Buffer.from(assertion?.split('.')[index] ?? '', 'base64url').toString())
}

test('oidc-provider accepts the client with each algorithm, and rejects it with another key', async t => {
  const keys = algorithms.map(name => {
    const [key, other] = /^[RP]S/.test(name) ? [right, wrong] : [newKey(name), newKey(name)]
    return { name, key, other }
  })
  const clients = keys.map(({ name, key }) => clientWith(`client-${name}`, name, [key, 'k1']))
  const { issuer } = await startProvider(t, clients)
  const transport = createTransport(10_000)
  t.teardown(() => transport.close())
  async function answerTo(algorithm: KeyAlgorithm, key: KeyObject) {
    const { platform } = testConfig(unreachableIdp, {
      platform: {
        ...discovered({ issuer }),
        clientId: `client-${algorithm}`,
        clientAuthMethod: 'private_key_jwt',
        clientKey: jwkOf(key, { kid: 'k1', alg: algorithm })
      }
    })
    const idp = createIdentityProvider(platform, transport)
    const grant = idp.refreshTokenGrant({ refreshToken: 'made-up', scope: 'openid' })
    return (await t.throwsAsync(grant, { instanceOf: OAuthError }))?.error
  }
  for (const { name, key, other } of keys) {
    t.is(await answerTo(name, key), 'invalid_grant', name)
    t.is(await answerTo(name, other), 'invalid_client', name)
  }
})

test('users sign in and stay signed in with a key, and SIGHUP replaces the key', async t => {
  const [first, second] = [newKey('ES256'), newKey('ES256')]
  const client = clientWith('app', 'ES256', [first, 'first'], [second, 'second'])
  const { issuer, assertions } = await startProvider(t, [client])
  const cwd = await tempFolder(t, { 'key.jwk': jwkOf(first, { kid: 'first' }) })
  const program = await startProgram(t, {
    cwd,
    command: commandWithMovableClock,
    env: {
      PORT: '0',
      PLATFORM_AUTH_HOST: '127.0.0.1',
      PLATFORM_CLIENT_KEY_FILE: 'key.jwk',
      ...environmentFor(issuer)
    }
  })
  const browser = createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: program.url } })
  let page = await browser.navigate('/api/auth/login')
  while (page.headers.location && page.headers.location !== '/') {
    page = await browser.navigate(new URL(page.headers.location, page.url).href, { from: issuer })
  }
  t.is(page.statusCode, 302, page.text())
  const refresh = async (count: number) => {
    program.signal('SIGUSR2')
    await program.logged('clock_moved', count)
    return browser.fetch('/api/auth/profile')
  }
  t.is((await refresh(1)).json().name, 'ada')
  await writeFile(join(cwd, 'key.jwk'), jwkOf(second, { kid: 'second' }))
  program.signal('SIGHUP')
  await program.logged('secrets_reloaded')
  t.is((await refresh(2)).statusCode, 200)

  const heads = assertions.map(assertion => partOf(assertion, 0))
  t.deepEqual(
    heads,
    ['first', 'first', 'second'].map(kid => ({ alg: 'ES256', kid }))
  )
  const { iss, sub, aud, iat, exp, jti } = partOf(assertions[0], 1)
  const lifetime = Number(exp) - Number(iat)
  t.deepEqual({ iss, sub, aud, lifetime }, { iss: 'app', sub: 'app', aud: issuer, lifetime: 120 })
  t.not(jti, partOf(assertions[1], 1).jti)
})

test('check says if the provider accepts the key, and what to register', async t => {
  const { issuer } = await startProvider(t, [clientWith('app', 'RS256', [right, 'key-1'])])
  const findingFor = async (key: KeyObject) => {
    const env = { PLATFORM_CLIENT_KEY: pemOf(key), PLATFORM_CLIENT_KEY_ID: 'key-1', ...environmentFor(issuer) }
    return (await check(t, [], { env })).allOf('client')
  }
  isGolden(t, [...(await findingFor(wrong)), ...(await findingFor(right))])
})
