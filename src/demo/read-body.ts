import type Koa from 'koa'

/** Reads the body of a request. Returns undefined if it is larger than `maxBytes`. */
export async function readBody(ctx: Koa.Context, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of ctx.req as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
