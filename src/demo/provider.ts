import { type JsonWebKey, randomBytes } from 'node:crypto'
import type { AdapterFactory, AdapterPayload, ClientMetadata, KoaContextWithOIDC } from 'oidc-provider'
import { InvalidScope } from 'oidc-provider/lib/helpers/errors.js'
import { base, Prompt } from 'oidc-provider/lib/helpers/interaction_policy/index.js'
import { Provider } from 'oidc-provider/lib/provider.js'
import { createExpiringMap } from '../base/expiring-map.js'
import type { DemoPages } from './pages.js'
import { audience, isKnownScope, paths, platformClaims, platformScopes, splitScope } from './platform.js'
import type { Users } from './users.js'

interface DemoProviderOptions {
  readonly issuer: string
  readonly client: ClientMetadata
  readonly signingKey: JsonWebKey
  readonly tokenLifetimeSeconds: number
  readonly users: Users
  readonly pages: DemoPages
  readonly now: () => number
}

const minute = 60
const day = 24 * 60 * minute

export function createProvider(options: DemoProviderOptions): Provider {
  const { issuer, client, signingKey, tokenLifetimeSeconds, users, pages, now } = options
  // oidc-provider uses the system clock, but a test may have moved the clock of the demo, the browser and the server
  // ahead. According to the moved clock, cookies and ID tokens might already have expired when they are issued. Their
  // lifetimes are therefore extended by the difference between the clocks.
  const extendForMovedClock = (seconds: number) => () => seconds + Math.max(0, Math.ceil((now() - Date.now()) / 1000))

  return new Provider(issuer, {
    adapter: createStore(now),
    clients: [client],
    clientAuthMethods: ['client_secret_basic', 'client_secret_post'],
    clientBasedCORS: () => false,
    cookies: {
      names: { session: 'demo_session', interaction: 'demo_sign_in', resume: 'demo_resume' },
      keys: [randomBytes(32).toString('base64url')]
    },
    fetch: fetchFromThisMachine,
    features: {
      backchannelLogout: { enabled: client.backchannel_logout_uri !== undefined },
      devInteractions: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => audience,
        useGrantedResource: () => true,
        getResourceServerInfo: ctx => ({
          scope: knownScopes(ctx).join(' '),
          audience,
          accessTokenFormat: 'jwt',
          accessTokenTTL: tokenLifetimeSeconds,
          jwt: { sign: { alg: 'RS256' } }
        })
      },
      revocation: { enabled: true, allowedPolicy: (_ctx, caller, token) => token.clientId === caller.clientId },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: ctx => pages.signOut(ctx, signOutForm(ctx)),
        postLogoutSuccessSource: ctx => pages.signedOut(ctx)
      }
    },
    formats: {
      // Like those of Autodesk Platform Services, a refresh token has 42 characters of six bits each.
      bitsOfOpaqueRandomness: (_ctx, token) => (token.kind === 'RefreshToken' ? 252 : 256),
      customizers: { jwt: (_ctx, token, jwt) => platformClaims(token, jwt, now) }
    },
    interactions: { url: (_ctx, interaction) => `${paths.signIn}/${interaction.uid}`, policy: signInPolicy() },
    jwks: { keys: [signingKey] },
    pkce: { required: () => false },
    renderError: (ctx, out) => pages.failed(ctx, out),
    responseTypes: ['code'],
    routes: {
      authorization: paths.authorization,
      end_session: paths.endSession,
      jwks: paths.jwks,
      revocation: paths.revocation,
      token: paths.token,
      userinfo: paths.userInfo
    },
    scopes: [...platformScopes],
    ttl: {
      AccessToken: tokenLifetimeSeconds,
      AuthorizationCode: 5 * minute,
      Grant: 15 * day,
      IdToken: extendForMovedClock(60 * minute),
      Interaction: extendForMovedClock(60 * minute),
      RefreshToken: 15 * day,
      Session: extendForMovedClock(day)
    },

    // These are the rules of Autodesk Platform Services. Every code exchange returns a refresh token, even without the
    // scope `offline_access`. A refresh token can be used only once. An unused refresh token stays valid when the
    // user's session at the provider ends.
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    expiresWithSession: () => false,

    loadExistingGrant: grantEverything,
    findAccount(_ctx, id) {
      const user = users.find(id)
      return user && { accountId: user.id, claims: () => ({ sub: user.id }) }
    }
  })
}

// oidc-provider knows only `prompt=login`. The demo also shows its sign-in page for `prompt=select_account` (OpenID
// Connect Core section 3.1.2.1).
function signInPolicy() {
  const policy = base()
  policy.add(new Prompt({ name: 'select_account', requestable: true }))
  return policy
}

// oidc-provider passes a dispatcher that rejects requests to this machine. The demo sends requests only to the application, which is
// on this machine, so it connects directly, even if NODE_USE_ENV_PROXY makes Node's own fetch use a proxy.
async function fetchFromThisMachine(url: string | URL | Request, options: RequestInit = {}): Promise<Response> {
  const { Agent, fetch } = await import('undici')
  // With 0, undici keeps no connection open (RFC 9112 section 9.3).
  const direct = { ...options, dispatcher: new Agent({ pipelining: 0 }) }
  return (await fetch(String(url), direct as Parameters<typeof fetch>[1])) as unknown as Response
}

// Returns all scopes of Autodesk Platform Services and the scopes of this request. At the authorization endpoint, the
// request contains the scopes. At the token endpoint, the code or the refresh token contains them. An unknown scope is
// an error.
function knownScopes(ctx: KoaContextWithOIDC): string[] {
  const { params, entities } = ctx.oidc
  const sources = [params, entities.AuthorizationCode, entities.RefreshToken]
  const requestedScopes = sources.flatMap(source => splitScope(source?.scope))
  const unknownScopes = requestedScopes.filter(scope => !isKnownScope(scope))
  if (unknownScopes.length > 0) throw new InvalidScope('unknown scope', unknownScopes.join(' '))
  return [...new Set([...platformScopes, ...requestedScopes])]
}

// Grants all requested scopes without a consent page. Each login gets a separate grant, because the reuse of a refresh
// token must end only the login to which this token belongs, and no other login in the same browser.
async function grantEverything(ctx: KoaContextWithOIDC) {
  const { account, client, provider } = ctx.oidc
  if (!account || !client) return undefined
  const scope = splitScope(ctx.oidc.params?.scope).join(' ')
  const grant = new provider.Grant({ accountId: account.accountId, clientId: client.clientId })
  grant.addOIDCScope(scope)
  grant.addResourceScope(audience, scope)
  await grant.save()
  return grant
}

// Returns the values of the built-in sign-out form of oidc-provider. Our sign-out form needs the same values.
function signOutForm({ oidc }: KoaContextWithOIDC) {
  return { action: oidc.urlFor('end_session_confirm'), xsrf: String(oidc.session?.state?.secret) }
}

const MAX_RECORDS = 100_000

/**
 * Keeps the provider's records in memory. Each kind of record (session, grant, refresh token, …) has a separate map. A used refresh
 * token must be recognized when it is used again, so its record is kept, too. The oldest records are evicted first.
 */
export function createStore(now: () => number): AdapterFactory {
  return function createAdapter() {
    const records = createExpiringMap<AdapterPayload>(MAX_RECORDS, now)

    return {
      async upsert(id, payload, expiresIn = Number.POSITIVE_INFINITY) {
        records.set(id, payload, expiresIn * 1000)
      },
      find: async id => records.get(id),
      async findByUid(uid) {
        // When a session gets a new id, oidc-provider stores the session again with the same uid, so the newest record
        // with this uid is the right record.
        let found: AdapterPayload | undefined
        for (const [, payload] of records.entries()) if (payload.uid === uid) found = payload
        return found
      },
      // Only the device flow uses user codes, and the demo does not support that flow.
      findByUserCode: async () => undefined,
      async consume(id) {
        const payload = records.get(id)
        if (payload) payload.consumed = Math.floor(now() / 1000)
      },
      destroy: async id => records.delete(id),
      async revokeByGrantId(grantId) {
        for (const [id, payload] of records.entries()) if (payload.grantId === grantId) records.delete(id)
      }
    }
  }
}
