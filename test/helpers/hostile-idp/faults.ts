// The ways in which an identity provider can fail. A fault handles one request: it can let the provider process the
// request (`process`), send any response, or cut the connection.
import type { ServerResponse } from 'node:http'
import { type Answer, html, type IdpRequest, oauthError } from './requests.js'

export interface Exchange {
  readonly request: IdpRequest
  /**
   * Processes the request (a code is spent, a refresh token rotates) and returns the correct response without sending
   * it.
   */
  process(): Answer
  send(answer: Answer): void
  readonly response: ServerResponse
}

export type Fault = (exchange: Exchange) => void | Promise<void>

/** Sends the correct response, to skip a request in a queue of faults. */
const none: Fault = exchange => exchange.send(exchange.process())

/** Never responds. The connection stays open until the client closes it or the test ends. */
const hang = (): Fault => () => {}

/** Cuts the connection. With `after`, the provider has spent the grant, and its response is lost. */
const reset = (when: 'before' | 'after' = 'before'): Fault => {
  return exchange => {
    if (when === 'after') exchange.process()
    exchange.response.socket?.resetAndDestroy()
  }
}

/** Announces the length of the whole response, sends half of it and closes the connection. */
const half = (): Fault => exchange => {
  const { status, body = '' } = exchange.process()
  const bytes = bytesOf(body)
  exchange.response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length })
  exchange.response.write(bytes.subarray(0, Math.ceil(bytes.length / 2)), () => exchange.response.socket?.destroy())
}

/** Sends this response without processing the request, so the grant is not spent. */
const answer = (instead: Answer): Fault => {
  return exchange => exchange.send(instead)
}

const status = (code: number): Fault => answer({ status: code, body: { error: 'server_error' } })
const tooManyRequests = (retryAfterSeconds = 7): Fault =>
  answer({
    status: 429,
    headers: { 'retry-after': String(retryAfterSeconds) },
    body: { error: 'temporarily_unavailable' }
  })
const htmlPage = (code = 200): Fault => answer(html('Scheduled maintenance', code))
const redirect = (location: string): Fault => answer({ status: 302, headers: { location } })
const empty = (code = 200): Fault => answer({ status: code })
const notJson = (code = 200, body = '{"access_token":'): Fault =>
  answer({ status: code, headers: { 'content-type': 'application/json' }, body })
const error = (name: string, code = 400): Fault => answer(oauthError(name, `A fault: ${name}`, code))

/** The error format of the gateway in front of the platform. It has no member `error`. */
const gateway = (errorCode = 'AUTH-001', code = 403): Fault =>
  answer({
    status: code,
    body: {
      developerMessage: 'The client_id specified does not have access to the api product',
      userMessage: '',
      errorCode,
      'more info': 'https://developer.example/errors'
    }
  })

/** A very long JSON text, sent in pieces, so that a size limit must apply while it streams. */
const giant = (bytes = 16 * 1024 * 1024): Fault => {
  return ({ response }) => {
    const piece = Buffer.alloc(64 * 1024, 'x')
    let left = bytes
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{"access_token":"')
    const more = () => {
      while (left > 0 && !response.destroyed) {
        left -= piece.length
        if (!response.write(piece)) {
          response.once('drain', more)
          return
        }
      }
      if (!response.destroyed) response.end('"}')
    }
    more()
  }
}

/**
 * Processes the request and alters the response. Given members replace the correct ones and undefined removes a member,
 * or a function alters the whole body. JSON has no NaN or Infinity: use `notJson` with a string for these.
 */
const change = (
  alter: Readonly<Record<string, unknown>> | ((body: Record<string, unknown>) => Record<string, unknown>)
): Fault => {
  return exchange => {
    const right = exchange.process()
    if (typeof right.body !== 'object' || Buffer.isBuffer(right.body)) return exchange.send(right)
    const body = { ...right.body } as Record<string, unknown>
    exchange.send({ ...right, body: typeof alter === 'function' ? alter(body) : { ...body, ...alter } })
  }
}

export const faults = {
  none,
  hang,
  reset,
  half,
  answer,
  status,
  tooManyRequests,
  html: htmlPage,
  redirect,
  empty,
  notJson,
  error,
  gateway,
  giant,
  change
} as const

export function bytesOf(body: NonNullable<Answer['body']>): Buffer {
  if (Buffer.isBuffer(body)) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}
