import type { ExecutionContext } from 'ava'
import { createSigningKey, type Demo, type DemoOptions, startDemo } from '#src/demo/index.js'
import { type Browser, createBrowser } from '../helpers/browser.js'
import { signInAtDemo } from '../helpers/sign-in.js'

// No server listens at this URL. The tests read the demo's redirects to it and do not follow them.
export const callbackUrl = 'http://localhost:8080/api/auth/callback'

// The demos of one file share their key, because it takes a tenth of a second to make one.
const signingKey = createSigningKey()

export async function start(t: ExecutionContext, options: Partial<DemoOptions> = {}): Promise<Demo> {
  const faults: unknown[] = []
  const demo = await startDemo({
    callbackUrl,
    signingKey: await signingKey,
    log: { error: ({ err }) => faults.push(err) },
    ...options
  })
  t.teardown(async () => {
    await demo.close()
    if (faults.length > 0) throw new AggregateError(faults, 'the demo identity provider failed')
  })
  return demo
}

export function authorizationUrl(demo: Demo, parameters: Record<string, string | undefined> = {}): string {
  const url = new URL('/authentication/v2/authorize', demo.issuer)
  const all = {
    client_id: demo.clientId,
    response_type: 'code',
    redirect_uri: callbackUrl,
    state: 'the-state',
    scope: 'data:read viewables:read',
    ...parameters
  }
  for (const [name, value] of Object.entries(all)) if (value !== undefined) url.searchParams.set(name, value)
  return url.href
}

export function endSessionUrl(demo: Demo, parameters: Record<string, string> = {}): string {
  const all = { client_id: demo.clientId, post_logout_redirect_uri: demo.postLogoutUrl, ...parameters }
  return `${demo.issuer}/authentication/v2/logout?${new URLSearchParams(all)}`
}

interface TokenResponse {
  status: number
  headers: Headers
  body: {
    access_token: string
    refresh_token: string
    id_token?: string
    token_type: string
    expires_in: number
    scope: string
    error?: string
    error_description?: string
  }
}

async function requestToken(
  demo: Demo,
  form: Record<string, string>,
  secret: string | undefined = demo.clientSecret
): Promise<TokenResponse> {
  const response = await fetch(`${demo.issuer}/authentication/v2/token`, {
    method: 'POST',
    headers: { authorization: basic(demo.clientId, secret) },
    body: new URLSearchParams(form)
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as TokenResponse['body'] }
}

export function exchangeCode(demo: Demo, code: string, more: Record<string, string> = {}): Promise<TokenResponse> {
  return requestToken(demo, { grant_type: 'authorization_code', code, redirect_uri: callbackUrl, ...more })
}

export function refresh(demo: Demo, refreshToken: string, scope?: string): Promise<TokenResponse> {
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken }
  return requestToken(demo, scope === undefined ? form : { ...form, scope })
}

export function basic(id: string, secret: string): string {
  return `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`
}

export async function codeFor(
  t: ExecutionContext,
  demo: Demo,
  parameters: Record<string, string | undefined> = {},
  browser = createBrowser(t)
) {
  const callback = await signInAtDemo(browser, authorizationUrl(demo, parameters), 'Ada Lovelace')
  const code = new URL(callback).searchParams.get('code')
  if (code === null) throw new Error(`No code in ${callback}`)
  return code
}

export async function logIn(t: ExecutionContext, demo: Demo, parameters: Record<string, string | undefined> = {}) {
  const { status, body } = await exchangeCode(demo, await codeFor(t, demo, parameters))
  if (status !== 200) throw new Error(`The code was not exchanged: ${JSON.stringify(body)}`)
  return body
}

/** Signs in with this name, exchanges the code, and returns the user info. */
export async function userInfoOf(
  demo: Demo,
  name: string,
  browser: Browser,
  parameters: Record<string, string | undefined> = {}
): Promise<Record<string, unknown>> {
  const callback = new URL(await signInAtDemo(browser, authorizationUrl(demo, parameters), name))
  const { body } = await exchangeCode(demo, callback.searchParams.get('code') ?? '')
  return (await userInfo(demo, body.access_token)).json() as Promise<Record<string, unknown>>
}

export function claimsOf(jwt: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString())
}

export function userInfo(demo: Demo, accessToken: string): Promise<Response> {
  return fetch(`${demo.issuer}/userinfo`, { headers: { authorization: `Bearer ${accessToken}` } })
}

export function revoke(demo: Demo, token: string, hint = 'refresh_token'): Promise<Response> {
  return fetch(`${demo.issuer}/authentication/v2/revoke`, {
    method: 'POST',
    headers: { authorization: basic(demo.clientId, demo.clientSecret) },
    body: new URLSearchParams({ token, token_type_hint: hint })
  })
}
