/** The values that all parts of the benchmark share. */

export const CLIENT_ID = 'bench'
export const INTERNAL_SCOPES = ['data:read', 'viewables:read']
export const PUBLIC_SCOPES = ['viewables:read']
/** With the scheme http, cookie names have no prefix. With this path, the server has no base path. The rest has no effect. */
export const CALLBACK_URL = 'http://localhost:8080/api/auth/callback'

export const TOKEN_PATH = '/api/auth/token'
export const PROFILE_PATH = '/api/auth/profile'
export const LOGIN_PATH = '/api/auth/login'
export const CALLBACK_PATH = '/api/auth/callback'
/** The path of oauth2-proxy. The forward-auth port of this server answers every path. */
export const FORWARD_AUTH_PATH = '/oauth2/auth'
/** The path of the API, at the provider's port and at every program that has a proxy. */
export const API_PATH = '/api/data'
/** A path that calls an API with the access token of the session. */
export const HUBS_PATH = '/api/hubs'
/** The stand-in provider answers `/proxied/bytes-N` with N bytes. */
export const PROXIED_PATH = '/proxied'
