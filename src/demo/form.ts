import type Koa from 'koa'

const maxBytes = 8 * 1024

/** Reads a submitted form. Throws an HTTP error 415 or 413 if the body is not a form or is too large. */
export async function readForm(ctx: Koa.Context): Promise<URLSearchParams> {
  if (!ctx.is('application/x-www-form-urlencoded')) return ctx.throw(415)
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of ctx.req as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) return ctx.throw(413)
    chunks.push(chunk)
  }
  return new URLSearchParams(Buffer.concat(chunks).toString())
}
