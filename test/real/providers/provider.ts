// The interface between the scenarios and a real identity provider.
import type { Teardown } from '../../helpers/scope.js'

/**
 * The client that is registered at each provider. Its secret contains every character that must be encoded in Basic
 * credentials.
 */
export const client = {
  id: 'platform-auth-server',
  secret: 'a+secret/with=100%25&some:more~of it',
  callbackUrl: 'http://localhost:8080/api/auth/callback',
  homeUrl: 'http://localhost:8080/'
} as const

export const person = { userName: 'ada', email: 'ada@mail.example', password: 'a-password-of-Ada-1' } as const

export interface ProviderKind {
  readonly name: string
  readonly version: string
  /** The expected results that differ from the usual ones, by `scenario`, `mode` or `scenario, mode`. */
  readonly exceptions: Readonly<Record<string, string>>
  /** The program that is needed to build or run this provider. */
  readonly needs: string
  /** Builds or downloads the provider unless this was done before, and starts it. */
  start(t: Teardown): Promise<RunningProvider>
}

export interface RunningProvider {
  /** The settings on the provider's page in docs/providers, without those of the client. */
  readonly settings: Readonly<Record<'single' | 'dual', Readonly<Record<string, string>>>>
  /** Registers the URL for logout tokens. Missing if the provider has no back-channel logout. */
  registerBackchannelLogout?(url: string): Promise<void>
  /** Puts the user into the group `admins`, or removes it. Missing if the provider has no claim `groups`. */
  setAdmin?(isAdmin: boolean): Promise<void>
  /** Ends all logins at the provider. */
  endLogins(): Promise<void>
  /** Makes the provider sign later ID tokens with another key. */
  rotateKeys(): Promise<void>
}

/** Sends a request to the administration interface of a provider. Throws unless it succeeds. */
export async function administer(
  method: string,
  url: string,
  { token, json, form }: { token?: string; json?: unknown; form?: Record<string, string> } = {}
): Promise<unknown> {
  const response = await fetch(url, {
    method,
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(json !== undefined && { 'content-type': 'application/json' })
    },
    ...(json !== undefined && { body: JSON.stringify(json) }),
    ...(form && { body: new URLSearchParams(form) })
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url} responded with ${response.status}: ${text.slice(0, 500)}`)
  return text === '' ? undefined : JSON.parse(text)
}

/** The ids of the keys that a provider publishes. */
export async function keyIds(jwksUri: string): Promise<string> {
  const { keys } = (await administer('GET', jwksUri)) as { keys: readonly { kid: string }[] }
  return keys.map(({ kid }) => kid).join(' ')
}
