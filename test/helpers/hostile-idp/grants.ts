// The correct behaviour of a strict provider with single-use, rotating refresh tokens.
import {
  createHash,
  createPrivateKey,
  type ECKeyPairOptions,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
  sign
} from 'node:crypto'
import type { Quirks } from './quirks.js'
import { type Answer, html, type IdpRequest, oauthError } from './requests.js'

export interface GrantSettings {
  readonly clientId: string
  readonly clientSecret: string
  /**
   * Returns true if clients may authenticate with this secret. A platform may accept several secrets while one is
   * rotated.
   */
  readonly isClientSecret: (presented: string) => boolean
  /**
   * The only registered callback address. Any other address gets an error page of the provider and no redirect. If it
   * is undefined, every address is accepted.
   */
  readonly callbackUrl: string | undefined
  readonly now: () => number
  accessTokenLength: number
  accessTokenLifetimeSeconds: number
  /** The response of the userinfo endpoint. */
  profile: Record<string, unknown>
  /** The result of the next logins: a code, or this error. `iss` is added to the callback if it is given. */
  login: { error?: string; errorDescription?: string; iss?: string | undefined }
  /** Alters the claims of an ID token before it is signed. */
  idTokenClaims: (claims: Record<string, unknown>) => Record<string, unknown>
  /** The ways in which this provider differs from the strict one. */
  quirks: Quirks
}

export interface IssuedToken {
  readonly value: string
  readonly scope: string
  readonly grant: number
}

export interface Issued {
  readonly codes: readonly string[]
  readonly accessTokens: readonly IssuedToken[]
  readonly refreshTokens: readonly IssuedToken[]
  readonly idTokens: readonly string[]
  /** Secrets that the client creates: the code verifiers that it has sent. */
  readonly codeVerifiers: readonly string[]
}

/** The result of one login. All tokens of a grant end together. */
interface Grant {
  readonly id: number
  scope: string
  readonly nonce: string | undefined
  readonly hasRefreshToken: boolean
  refreshToken: string | undefined
  ended: boolean
}

interface Code {
  readonly grant: Grant
  readonly redirectUri: string
  readonly codeChallenge: string | undefined
  readonly expiresAt: number
  spent: boolean
}

const codeLifetimeMs = 5 * 60 * 1000
let grantCount = 0

export type Grants = ReturnType<typeof createGrants>

export function createGrants(settings: GrantSettings, issuer: () => string) {
  const codes = new Map<string, Code>()
  const refreshTokens = new Map<string, Grant>()
  const accessTokens = new Map<string, { readonly grant: Grant; readonly expiresAt: number }>()
  const issued = {
    codes: [] as string[],
    accessTokens: [] as IssuedToken[],
    refreshTokens: [] as IssuedToken[],
    idTokens: [] as string[],
    codeVerifiers: [] as string[]
  }
  const reuses: string[] = []
  const revoked: string[] = []
  const signer = createSigner()

  function authorize({ query }: IdpRequest): Answer {
    const { client_id, redirect_uri, response_type, scope = '', state, nonce, code_challenge } = query
    const { quirks } = settings
    if (quirks.errorPage && (client_id !== settings.clientId || redirect_uri !== settings.callbackUrl)) {
      return { status: 302, headers: { location: `${quirks.errorPage}?error=invalid_request&error_description=no` } }
    }
    if (quirks.loginPage && query.seen === undefined) {
      const location = `${quirks.loginPage}?${new URLSearchParams({ ...query, seen: 'yes' })}`
      return { status: 302, headers: { location, 'set-cookie': 'seen=yes; Path=/; HttpOnly' } }
    }
    if (client_id !== settings.clientId) return html('Unknown client', 400)
    if (!redirect_uri || (settings.callbackUrl && redirect_uri !== settings.callbackUrl)) {
      return html('Callback address mismatch', 400)
    }
    const back = (parameters: Record<string, string | undefined>): Answer => {
      const location = new URL(redirect_uri)
      for (const [name, value] of Object.entries({ ...parameters, state, iss: settings.login.iss })) {
        if (value !== undefined) location.searchParams.set(name, value)
      }
      return { status: 302, headers: { location: location.href } }
    }
    if (settings.login.error) {
      return back({ error: settings.login.error, error_description: settings.login.errorDescription })
    }
    if (response_type !== 'code') return back({ error: 'unsupported_response_type' })
    if (code_challenge && query.code_challenge_method !== 'S256') return back({ error: 'invalid_request' })
    if (scope.trim() === '' && !quirks.needsNoScope) return back({ error: 'invalid_scope' })

    if (quirks.oneGrantAPerson) for (const grant of refreshTokens.values()) grant.ended = true
    grantCount += 1
    const isOffline = !quirks.needsOfflineAccess || scope.split(' ').includes('offline_access')
    const needed = Object.entries(quirks.needsParameters ?? {})
    const hasRefreshToken = isOffline && needed.every(([name, value]) => query[name] === value)
    const grant: Grant = { id: grantCount, scope, nonce, hasRefreshToken, refreshToken: undefined, ended: false }
    const code = randomBytes(24).toString('base64url')
    const expiresAt = settings.now() + codeLifetimeMs
    codes.set(code, { grant, redirectUri: redirect_uri, codeChallenge: code_challenge, expiresAt, spent: false })
    issued.codes.push(code)
    return back({ code })
  }

  function token(request: IdpRequest): Answer {
    const refusal = refuseClient(request, settings)
    if (refusal) return refusal
    if (request.form.grant_type === 'authorization_code') return exchangeCode(request.form)
    if (request.form.grant_type === 'refresh_token') return rotate(request.form)
    return oauthError('unsupported_grant_type', 'Neither a code nor a refresh token.')
  }

  function exchangeCode(form: IdpRequest['form']): Answer {
    const code = codes.get(form.code ?? '')
    if (form.code_verifier !== undefined) issued.codeVerifiers.push(form.code_verifier)
    if (!code) return oauthError('invalid_grant', 'This code was never issued.')
    if (code.spent) {
      code.grant.ended = true
      return oauthError('invalid_grant', 'This code was used before.')
    }
    if (code.expiresAt < settings.now()) return oauthError('invalid_grant', 'This code has expired.')
    if (form.redirect_uri !== code.redirectUri) return oauthError('invalid_grant', 'Another redirect_uri.')
    if (!verifies(form.code_verifier, code.codeChallenge))
      return oauthError('invalid_grant', 'The code_verifier is wrong.')
    code.spent = true
    return issue(code.grant, code.grant.scope, true)
  }

  function rotate(form: IdpRequest['form']): Answer {
    const { quirks } = settings
    const dead = (description: string) => oauthError(quirks.deadRefreshToken ?? 'invalid_grant', description)
    const presented = form.refresh_token ?? ''
    const grant = refreshTokens.get(presented)
    if (!grant) return dead('This refresh token was never issued.')
    if (grant.refreshToken !== presented) {
      reuses.push(presented)
      grant.ended = true
    }
    if (grant.ended) return dead('The grant has ended.')
    const scope = (quirks.ignoresRefreshScope ? undefined : form.scope) ?? grant.scope
    const granted = new Set(grant.scope.split(' '))
    if (!scope.split(' ').every(name => granted.has(name))) {
      return oauthError('invalid_scope', 'More than was granted at the login.')
    }
    if (quirks.shrinksGrant) grant.scope = scope
    if (quirks.endsAccessTokens) {
      for (const [token, known] of accessTokens) if (known.grant === grant) accessTokens.delete(token)
    }
    return issue(grant, scope, false)
  }

  function issue(grant: Grant, scope: string, isLogin: boolean): Answer {
    // The whole token is random, so any part of it that is found elsewhere is a leak and not a coincidence.
    const { quirks } = settings
    const accessToken = quirks.namesScopeInToken ? signer.sign({ scope }) : randomText(settings.accessTokenLength)
    const isNew = grant.hasRefreshToken && (isLogin || !quirks.keepsRefreshToken)
    const refreshToken = isNew ? randomText(42) : undefined
    const named = scope.split(' ').filter(name => name !== quirks.omitsScope)
    const expiresAt = settings.now() + settings.accessTokenLifetimeSeconds * 1000
    accessTokens.set(accessToken, { grant, expiresAt })
    issued.accessTokens.push({ value: accessToken, scope, grant: grant.id })
    if (refreshToken !== undefined) {
      refreshTokens.set(refreshToken, grant)
      grant.refreshToken = refreshToken
      issued.refreshTokens.push({ value: refreshToken, scope, grant: grant.id })
    }
    const body: Record<string, unknown> = {
      token_type: 'Bearer',
      expires_in: settings.accessTokenLifetimeSeconds,
      access_token: accessToken,
      refresh_token: refreshToken,
      scope: quirks.namesScopeInToken ? undefined : [...(quirks.alwaysGrants?.split(' ') ?? []), ...named].join(' ')
    }
    if ((isLogin || quirks.idTokenOnRefresh) && grant.scope.split(' ').includes('openid')) {
      const seconds = Math.floor(settings.now() / 1000)
      const claims = settings.idTokenClaims({
        iss: issuer(),
        sub: String(settings.profile.sub ?? 'user'),
        aud: settings.clientId,
        iat: seconds,
        exp: seconds + settings.accessTokenLifetimeSeconds,
        ...(isLogin && grant.nonce !== undefined && { nonce: grant.nonce })
      })
      body.id_token = signer.sign(claims)
      issued.idTokens.push(String(body.id_token))
    }
    return { status: 200, headers: { 'cache-control': 'no-store' }, body }
  }

  function userinfo({ headers }: IdpRequest): Answer {
    const bearer = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]
    const known = bearer === undefined ? undefined : accessTokens.get(bearer)
    if (!known || known.grant.ended || known.expiresAt < settings.now()) {
      return {
        status: 401,
        headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
        body: { error: 'invalid_token' }
      }
    }
    return { status: 200, body: settings.profile }
  }

  function revoke(request: IdpRequest): Answer {
    const refusal = refuseClient(request, settings)
    if (refusal) return refusal
    const { token: presented, token_type_hint } = request.form
    if (!presented || !token_type_hint) return oauthError('invalid_request', 'token and token_type_hint are required.')
    revoked.push(presented)
    const grant = refreshTokens.get(presented) ?? accessTokens.get(presented)?.grant
    if (grant) grant.ended = true
    return { status: 200 }
  }

  return {
    issued: issued as Issued,
    /** Refresh tokens that were presented again after they had been used. Each of them ended its grant. */
    reuses: reuses as readonly string[],
    revoked: revoked as readonly string[],
    get jwks() {
      return signer.jwks
    },
    signJwt: signer.sign,
    rotateKeys: signer.rotate,
    authorize,
    token,
    userinfo,
    revoke,
    /** Returns true if this refresh token would be accepted now. */
    isAlive(refreshToken: string) {
      const grant = refreshTokens.get(refreshToken)
      return grant !== undefined && !grant.ended && grant.refreshToken === refreshToken
    },
    /** Ends every grant, as an administrator would. Every later refresh fails with invalid_grant. */
    endAllGrants() {
      for (const grant of refreshTokens.values()) grant.ended = true
    }
  }
}

/** RFC 6749 section 2.3: a request uses exactly one method of client authentication. */
function refuseClient(
  { headers, form }: IdpRequest,
  { clientId, isClientSecret, quirks }: GrantSettings
): Answer | undefined {
  const basic = /^Basic (.+)$/.exec(headers.authorization ?? '')?.[1]
  if (basic !== undefined && form.client_secret !== undefined) {
    return oauthError('invalid_request', 'The client authenticated twice.')
  }
  const [id = '', secret = ''] =
    basic === undefined ? [form.client_id, form.client_secret] : credentialsOf(basic).map(formDecoded)
  return id === clientId && isClientSecret(secret)
    ? undefined
    : oauthError(quirks.wrongClient ?? 'invalid_client', 'Unknown client or wrong secret.', 401)
}

function credentialsOf(basic: string): [id: string, secret: string] {
  const [id = '', ...secret] = Buffer.from(basic, 'base64').toString().split(':')
  return [id, secret.join(':')]
}

// RFC 6749 section 2.3.1: both parts are form-encoded.
function formDecoded(text: string): string {
  return new URLSearchParams(`=${text.replaceAll('&', '%26')}`).get('') ?? ''
}

function verifies(codeVerifier: string | undefined, codeChallenge: string | undefined): boolean {
  if (codeChallenge === undefined) return codeVerifier === undefined
  if (codeVerifier === undefined || !/^[A-Za-z0-9._~-]{43,128}$/.test(codeVerifier)) return false
  return createHash('sha256').update(codeVerifier).digest('base64url') === codeChallenge
}

interface SigningKey {
  readonly kid: string
  readonly publicJwk: JsonWebKey
  readonly key: KeyObject
}

// A key is created as a JWK. It is never exported, because on Node 20 the export of a key as JWK can wait for ever if the
// garbage collector runs on another object of the same key meanwhile.
const encoding = { format: 'jwk' } as const

function createSigningKey(kid: string): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: encoding,
    privateKeyEncoding: encoding
  } as object as ECKeyPairOptions<'pem', 'pem'>) as object as { privateKey: JsonWebKey; publicKey: JsonWebKey }
  return { kid, publicJwk: publicKey, key: createPrivateKey({ key: privateKey, format: 'jwk' }) }
}

// The first key is created once for each process.
const firstKey = createSigningKey('test')

function createSigner() {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  let keys = [firstKey]
  let rotations = 0
  return {
    get jwks() {
      return { keys: keys.map(({ kid, publicJwk }) => ({ ...publicJwk, kid, use: 'sig', alg: 'ES256' })) }
    },
    /** Signs claims with the current key. `header` replaces members of the usual header. */
    sign(claims: Record<string, unknown>, header: Record<string, unknown> = {}) {
      const { kid, key } = keys[0] as SigningKey
      const unsigned = `${part({ alg: 'ES256', kid, typ: 'JWT', ...header })}.${part(claims)}`
      const signature = sign('sha256', Buffer.from(unsigned), { key, dsaEncoding: 'ieee-p1363' })
      return `${unsigned}.${signature.toString('base64url')}`
    },
    /** From now on, another key signs. The JWK Set has both keys, unless `removesOld` is true. */
    rotate(removesOld = false) {
      keys = [createSigningKey(`test-${++rotations}`), ...(removesOld ? [] : keys)]
    }
  }
}

function randomText(length: number): string {
  return randomBytes(length).toString('base64url').slice(0, length)
}
