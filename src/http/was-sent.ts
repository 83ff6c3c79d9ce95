import type { ReadStream } from 'node:fs'
import type { Context } from 'koa'

/**
 * Whether the answer was handed over to its connection, all of it. Of a file Node says so a moment late: by then a client
 * that counted the bytes may have hung up.
 */
export function wasSent({ res, body, length }: Context): boolean {
  const { bytesRead } = (body ?? {}) as Partial<ReadStream>
  return res.writableFinished || (bytesRead !== undefined && bytesRead === length)
}
