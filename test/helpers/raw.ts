// Sends raw bytes, for requests that no ordinary HTTP client would send.
import { connect, type Socket } from 'node:net'

export interface RawAnswer {
  readonly statusCode: number
  /** The status line and the headers, as received. */
  readonly head: string
  readonly body: Buffer
}

interface RawOptions {
  /**
   * Stop after this many complete responses. By default, stop when the server closes the connection or the time limit
   * passes.
   */
  readonly answers?: number
  /** Close the connection after this many bytes, in the middle of a response. */
  readonly bytes?: number
  readonly timeoutMs?: number
  /** The requests are HEAD, so their responses have no body whatever their Content-Length is. */
  readonly head?: boolean
  /** Send a FIN after the last byte. */
  readonly end?: boolean
}

/**
 * Sends the pieces one after the other on one connection and resolves with all bytes received. A cut connection is a
 * result, not an error. `closedByServer` is false if the time limit passed first, or if the test had read enough.
 */
export function sendRaw(
  port: number,
  pieces: string | Buffer | readonly (string | Buffer)[],
  options: RawOptions = {}
) {
  const {
    answers: wanted,
    bytes: enough = Number.POSITIVE_INFINITY,
    timeoutMs = 60_000,
    head = false,
    end = false
  } = options
  const list = typeof pieces === 'string' || Buffer.isBuffer(pieces) ? [pieces] : pieces
  return new Promise<{ bytes: Buffer; answers: RawAnswer[]; closedByServer: boolean }>((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect({ port, host: '127.0.0.1' })
    const finish = (closedByServer: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      const bytes = Buffer.concat(chunks)
      resolve({ bytes, answers: parseAnswers(bytes, head), closedByServer })
    }
    const timer = setTimeout(() => finish(false), timeoutMs)
    socket.on('connect', () => writeAll(socket, list, end))
    socket.on('data', chunk => {
      chunks.push(chunk)
      if (socket.bytesRead >= enough) finish(false)
      if (wanted !== undefined && parseAnswers(Buffer.concat(chunks), head).length >= wanted) finish(false)
    })
    socket.on('close', () => finish(true))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNREFUSED') return
      clearTimeout(timer)
      reject(error)
    })
  })
}

/** Sends one request byte for byte on a new connection. `headers` contains complete header lines. */
export async function askRaw(port: number, target: string, headers = '', method = 'GET') {
  const request = `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${headers}Connection: close\r\n\r\n`
  const { answers, bytes } = await sendRaw(port, request, { head: method === 'HEAD' })
  const [answer] = answers
  if (!answer) throw new Error(`No response to ${method} ${target}: ${bytes}`)
  const header = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(answer.head)?.[1]
  return { ...answer, header, text: answer.body.toString() }
}

function writeAll(socket: Socket, pieces: readonly (string | Buffer)[], end: boolean): void {
  const [first, ...rest] = pieces
  if (first === undefined) {
    if (end) socket.end()
    return
  }
  // Text is sent as latin1, so `\xff` in a test is the byte 0xff.
  socket.write(typeof first === 'string' ? Buffer.from(first, 'latin1') : first, () => writeAll(socket, rest, end))
}

/** Parses the complete responses in the received bytes. It understands Content-Length and chunked bodies. */
function parseAnswers(bytes: Buffer, toHead: boolean): RawAnswer[] {
  const answers: RawAnswer[] = []
  let rest = bytes
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd === -1) return answers
    const head = rest.subarray(0, headEnd).toString('latin1')
    const statusCode = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1])
    if (Number.isNaN(statusCode)) return answers
    const after = rest.subarray(headEnd + 4)
    const length = toHead ? 0 : bodyLength(head, statusCode, after)
    if (length === undefined || after.length < length) return answers
    answers.push({ statusCode, head, body: after.subarray(0, length) })
    rest = after.subarray(length)
  }
}

function bodyLength(head: string, statusCode: number, after: Buffer): number | undefined {
  if (statusCode < 200 || statusCode === 204 || statusCode === 304) return 0
  if (/^transfer-encoding:.*chunked/im.test(head)) {
    const end = after.indexOf('0\r\n\r\n')
    return end === -1 ? undefined : end + 5
  }
  const length = /^content-length: *(\d+)/im.exec(head)?.[1]
  return length === undefined ? after.length : Number(length)
}
