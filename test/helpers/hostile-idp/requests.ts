// A request to the provider, and a response that it is going to send.
import type { IncomingHttpHeaders } from 'node:http'

export const endpoints = ['discovery', 'jwks', 'authorize', 'token', 'userinfo', 'revoke', 'endSession'] as const
export type Endpoint = (typeof endpoints)[number]

export const paths: Readonly<Record<Endpoint, string>> = {
  discovery: '/.well-known/openid-configuration',
  jwks: '/jwks',
  authorize: '/authorize',
  token: '/token',
  userinfo: '/userinfo',
  revoke: '/revoke',
  endSession: '/logout'
}

export interface IdpRequest {
  readonly endpoint: Endpoint | undefined
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: IncomingHttpHeaders
  readonly form: Readonly<Record<string, string>>
  /** The body as received, for details that `form` does not show, such as repeated parameters and encoding. */
  readonly body: string
}

export interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON. */
  readonly body?: string | Buffer | Readonly<Record<string, unknown>>
}

export function oauthError(error: string, description: string, status = 400): Answer {
  return { status, body: { error, error_description: description } }
}

export function html(title: string, status = 200): Answer {
  const body = `<!doctype html><title>${title}</title><h1>${title}</h1>`
  return { status, headers: { 'content-type': 'text/html; charset=utf-8' }, body }
}
