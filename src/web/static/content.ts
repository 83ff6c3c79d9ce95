/** Sends the content of an opened file: whole, a single range of it, or status 304 if the client already has it. */
import { createHash, hash } from 'node:crypto'
import fs from 'node:fs'
import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import { LRUCache } from 'lru-cache'
import { closeFile, type OpenedFile } from './open-inside.js'

// A stream reads this many bytes in one step, so a stream has no advantage for a smaller file.
const SMALL_FILE_BYTES = 64 * 1024

/**
 * Creates a function that sends a file and closes it, even after an error. The ETag is a hash of the content. The size
 * and the time of a file would not be enough, because the files of two releases may have the same size and the same
 * time: npm packages and container images set all times to a constant. For the same reason, `If-Modified-Since` alone
 * never causes a 304.
 */
export function contentSender() {
  const hashOfLargeFile = largeFileHashes()

  return async function sendContent(ctx: Context, file: OpenedFile): Promise<void> {
    const { size, mtime } = file.stats
    let isStreamed = false
    try {
      const content = size > SMALL_FILE_BYTES ? undefined : await contentOf(file)
      const etag = content ? etagOf(hash('sha256', content, 'base64url')) : await hashOfLargeFile(file)
      ctx.set('ETag', etag)
      ctx.set('Last-Modified', mtime.toUTCString())
      ctx.set('Accept-Ranges', 'bytes')
      if (hasContentOf(ctx, etag)) {
        ctx.status = 304
        return
      }
      ctx.status = 200
      const range = requestedRange(ctx, size, etag)
      if (range === 'unsatisfiable') {
        ctx.set('Content-Range', `bytes */${size}`)
        ctx.body = null
        ctx.status = 416
        return
      }
      const { start, end } = range ?? { start: 0, end: size - 1 }
      if (range) {
        ctx.set('Content-Range', `bytes ${start}-${end}/${size}`)
        ctx.status = 206
      }
      ctx.length = end - start + 1
      if (ctx.method === 'HEAD') return
      isStreamed = content === undefined
      ctx.body = content ? content.subarray(start, end + 1) : streamOf(file, start, end, ctx.res)
    } finally {
      if (!isStreamed) closeFile(file.fd)
    }
  }
}

// The hash is shortened to 132 bits, which are enough to tell releases apart.
function etagOf(contentHash: string): string {
  return `"${contentHash.slice(0, 22)}"`
}

const MAX_HASHES = 10_000
const CHUNK_BYTES = 1024 * 1024

/** Creates a function that returns the ETag of a large file, which it computes once for each version of the file. */
function largeFileHashes() {
  const known = new LRUCache<string, Promise<string>>({ maxSize: MAX_HASHES, sizeCalculation: () => 1 })

  return function etagOfLargeFile({ fd }: OpenedFile): Promise<string> {
    const { dev, ino, size, mtimeNs, ctimeNs } = fs.fstatSync(fd, { bigint: true })
    const version = [dev, ino, size, mtimeNs, ctimeNs].join(' ')
    const etag = known.get(version) ?? hashOf(fd, Number(size))
    known.set(version, etag)
    etag.catch(() => known.delete(version))
    return etag
  }
}

/** Hashes the first bytes of a file, because it may grow meanwhile. */
async function hashOf(fd: number, size: number): Promise<string> {
  const sha256 = createHash('sha256')
  const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size))
  for (let position = 0; position < size; ) {
    const bytes = await read(fd, chunk.subarray(0, size - position), position)
    if (bytes === 0) throw new ShortenedError()
    sha256.update(chunk.subarray(0, bytes))
    position += bytes
  }
  return etagOf(sha256.digest('base64url'))
}

/**
 * True if the client has the content already (RFC 9110 section 13.1.2). Proxies that compress a response mark its ETag
 * as weak.
 */
function hasContentOf(ctx: Context, etag: string): boolean {
  const given = ctx.get('If-None-Match')
  return given === '*' || given.split(',').some(tag => tag.trim().replace(/^W\//, '') === etag)
}

interface Range {
  readonly start: number
  /** The position of the last byte. */
  readonly end: number
}

/**
 * Returns the requested range of a GET request (RFC 9110 section 14.2). Returns undefined if the whole file is to be
 * sent: also for several ranges, for a range that is malformed, and if the client has a part of a different version
 * (`If-Range`, section 13.1.5).
 */
function requestedRange(ctx: Context, size: number, etag: string): Range | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/i.exec(ctx.get('Range')) ?? []
  if (ctx.method !== 'GET' || (first === '' && last === '')) return undefined
  const condition = ctx.get('If-Range')
  if (condition !== '' && condition !== etag) return undefined
  const isSuffix = first === ''
  if (!isSuffix && last !== '' && Number(last) < Number(first)) return undefined
  const start = isSuffix ? Math.max(0, size - Number(last)) : Number(first)
  const end = isSuffix || last === '' ? size - 1 : Math.min(Number(last), size - 1)
  return start < size ? { start, end } : 'unsatisfiable'
}

/**
 * Reads a small file in one step. A stream would be slower, because it reads a second time to find the end of the file.
 */
async function contentOf({ fd, stats: { size } }: OpenedFile): Promise<Buffer> {
  const content = Buffer.allocUnsafe(size)
  if ((await read(fd, content, 0)) < size) throw new ShortenedError()
  return content
}

/** Resolves with the number of bytes, which is smaller than the buffer at the end of the file. */
function read(fd: number, buffer: Buffer, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.read(fd, buffer, 0, buffer.length, position, (error, bytesRead) => {
      if (error) reject(error)
      else resolve(bytesRead)
    })
  })
}

/**
 * Reads a large file piece by piece, and no more bytes than the headers promise. If the file becomes shorter, the
 * response can no longer be completed. The connection is then closed, so that the client does not wait for the rest.
 */
function streamOf({ fd }: OpenedFile, start: number, end: number, response: ServerResponse): fs.ReadStream {
  const stream = fs.createReadStream('', { fd, start, end })
  return stream.once('end', () => {
    if (stream.bytesRead < end - start + 1) response.destroy(new ShortenedError())
  })
}

class ShortenedError extends Error {
  override readonly message = 'The file became shorter while it was being sent.'
}
