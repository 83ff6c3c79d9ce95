/**
 * The APIs of the demo: the user info endpoint, and small APIs to which the API proxy of a demo forwards requests (hubs, issues,
 * a file and an event stream). As with Autodesk Platform Services, user info requires only a valid access token, while the other
 * APIs require one with a certain scope.
 */
import { createHash, createPublicKey, type JsonWebKey, verify } from 'node:crypto'
import { PassThrough } from 'node:stream'
import type Koa from 'koa'
import { isJsonObject, parseJson } from '../base/json.js'
import { paths } from './platform.js'
import type { Users } from './users.js'

const REQUIRED_SCOPE = 'data:read'
const FILE_BYTES = 4 * 1024 * 1024
const MAX_BODY_BYTES = 64 * 1024
const MAX_ISSUES = 100
const MAX_TITLE_LENGTH = 200

type AccessTokenReader = ReturnType<typeof createAccessTokenReader>

export function createAccessTokenReader(signingKey: JsonWebKey, now: () => number) {
  const key = createPublicKey({ key: signingKey, format: 'jwk' })
  /** Returns the user id and the scopes if this demo issued the access token of a request and it has not expired. */
  return function readAccessToken(ctx: Koa.Context) {
    const token = /^bearer ([\w-]+)\.([\w-]+)\.([\w-]+)$/i.exec(ctx.get('Authorization'))
    const [, header, payload, signature] = token ?? []
    if (!header || !payload || !signature) return undefined
    if (!verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url')))
      return undefined
    // Only this demo has the key, so a signed payload is always valid JSON. An ID token is signed with the same key,
    // but is not accepted as an access token, because it has no `userid`.
    const claims: Record<string, unknown> = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const { exp, userid, scope } = claims
    if (typeof exp !== 'number' || exp * 1000 <= now() || typeof userid !== 'string') return undefined
    return { userId: userid, scopes: scope as readonly string[] }
  }
}

/**
 * Responds to requests for user info. Any valid access token is sufficient, whatever its scopes are. The user info
 * endpoint of oidc-provider cannot be used, because it accepts only tokens in its store. The demo's access tokens are
 * JWTs, which oidc-provider does not store.
 */
export function userInfo(readAccessToken: AccessTokenReader, users: Users): Koa.Middleware {
  return async function userInfo(ctx, next) {
    if (ctx.path !== paths.userInfo || (ctx.method !== 'GET' && ctx.method !== 'POST')) return next()
    ctx.set('Cache-Control', 'no-store')
    const token = readAccessToken(ctx)
    const user = token && users.find(token.userId)
    if (!user) {
      ctx.status = 401
      ctx.set('WWW-Authenticate', 'Bearer error="invalid_token"')
      ctx.body = {
        error: 'invalid_token',
        error_description: 'The access token is missing, has expired, or was not issued by this demo.'
      }
      return
    }
    ctx.body = {
      sub: user.id,
      name: user.name,
      given_name: user.givenName,
      family_name: user.familyName,
      preferred_username: user.userName,
      email: user.email,
      email_verified: true
    }
  }
}

/** Returns the proxy rules of `--demo`. */
export function demoRules(origin: string): string[] {
  return [
    `GET /api/hubs/** ${origin}/project/v1/hubs/**`,
    `GET,POST /api/issues/*/issues ${origin}/construction/issues/v1/projects/*/issues`,
    `GET /api/files/* ${origin}/oss/v2/files/*`,
    `GET /api/events ${origin}/events`
  ]
}

export function platformApis(readAccessToken: AccessTokenReader): Koa.Middleware {
  const issues = [{ id: 1, title: 'A door opens the wrong way', createdBy: 'the demo' }]
  const routes = [
    [/^\/project\/v1\/hubs\/?$/, listHubs],
    [/^\/construction\/issues\/v1\/projects\/[^/]+\/issues$/, handleIssues],
    [/^\/oss\/v2\/files\/[^/]+$/, sendFile],
    [/^\/events$/, sendEvents]
  ] as const

  return async function platformApis(ctx, next) {
    const route = routes.find(([pattern]) => pattern.test(ctx.path))
    if (!route) return next()
    const token = readAccessToken(ctx)
    if (!token)
      reject(ctx, 401, 'AUTH-006', 'The access token is missing, has expired, or was not issued by this demo.')
    else if (!token.scopes.includes(REQUIRED_SCOPE)) {
      reject(ctx, 403, 'AUTH-010', `The access token lacks the scope ${REQUIRED_SCOPE}.`)
    } else await route[1](ctx, token.userId)
  }

  async function handleIssues(ctx: Koa.Context, userId: string) {
    if (ctx.method !== 'POST') {
      ctx.body = { results: issues, pagination: { totalResults: issues.length } }
      return
    }
    const title = await readTitle(ctx)
    if (title === undefined) reject(ctx, 400, 'ISSUE-001', 'Send JSON such as {"title": "A door opens the wrong way"}.')
    else if (issues.length >= MAX_ISSUES) reject(ctx, 429, 'ISSUE-002', 'The demo cannot store more issues.')
    else {
      const issue = { id: issues.length + 1, title, createdBy: userId }
      issues.push(issue)
      ctx.status = 201
      ctx.body = issue
    }
  }
}

// Responds with an error in the format of Autodesk Platform Services.
function reject(ctx: Koa.Context, status: number, errorCode: string, developerMessage: string): void {
  ctx.status = status
  ctx.body = { developerMessage, errorCode, 'more info': 'This is the demo.' }
}

function listHubs(ctx: Koa.Context): void {
  const hub = (id: string, name: string) => ({ type: 'hubs', id, attributes: { name, region: 'EMEA' } })
  ctx.body = { jsonapi: { version: '1.0' }, data: [hub('b.demo-1', 'Bridges'), hub('b.demo-2', 'Towers')] }
}

async function readTitle(ctx: Koa.Context): Promise<string | undefined> {
  const issue = parseJson((await readBody(ctx, MAX_BODY_BYTES)) ?? '')
  const title = isJsonObject(issue) ? issue.title : undefined
  return typeof title === 'string' && title.trim() !== '' ? title.slice(0, MAX_TITLE_LENGTH) : undefined
}

let file: Buffer | undefined

/** Sends the whole file, or one range of bytes (RFC 9110 section 14). */
function sendFile(ctx: Koa.Context): void {
  file ??= Buffer.concat(
    Array.from({ length: FILE_BYTES / 32 }, (_, index) => createHash('sha256').update(String(index)).digest())
  )
  ctx.set({ 'Accept-Ranges': 'bytes', ETag: '"demo-file"', 'Content-Disposition': 'attachment; filename="demo.bin"' })
  ctx.type = 'application/octet-stream'
  const [range, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(ctx.get('Range')) ?? []
  if (range === undefined || range === 'bytes=-') {
    ctx.body = file
    return
  }
  const start = from === '' ? Math.max(0, FILE_BYTES - Number(to)) : Number(from)
  const end = from === '' || to === '' ? FILE_BYTES - 1 : Math.min(Number(to), FILE_BYTES - 1)
  if (start > end) {
    ctx.status = 416
    ctx.set('Content-Range', `bytes */${FILE_BYTES}`)
    return
  }
  ctx.status = 206
  ctx.set('Content-Range', `bytes ${start}-${end}/${FILE_BYTES}`)
  ctx.body = file.subarray(start, end + 1)
}

function sendEvents(ctx: Koa.Context): void {
  const events = new PassThrough()
  let count = 0
  const send = () => {
    count += 1
    events.write(`data: {"count":${count}}\n\n`)
  }
  const timer = setInterval(send, 1000)
  events.once('close', () => clearInterval(timer))
  ctx.type = 'text/event-stream'
  ctx.set('Cache-Control', 'no-cache')
  ctx.body = events
  send()
}

/** Reads the body of a request. Returns undefined if it is larger than `maxBytes`. */
export async function readBody(ctx: Koa.Context, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of ctx.req as AsyncIterable<Buffer>) {
    bytes += chunk.length
    // Leaving the loop early would close the connection without a response.
    if (bytes <= maxBytes) chunks.push(chunk)
  }
  return bytes > maxBytes ? undefined : Buffer.concat(chunks).toString()
}
