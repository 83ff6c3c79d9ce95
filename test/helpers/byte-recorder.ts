// A TCP relay in front of the server that keeps a copy of every byte the server sends to any client.
import { connect, createServer } from 'node:net'
import type { ExecutionContext } from 'ava'
import { listen } from './ports.js'

export interface ByteRecorder {
  /** Ask here instead of at the server. */
  readonly url: string
  readonly port: number
  /** What was sent, one buffer for each connection. */
  sent(): readonly Buffer[]
  /** What was asked, one buffer for each connection. */
  asked(): readonly Buffer[]
  readonly byteCount: number
  /** Fails the test for every secret that is in the bytes sent, or in `alsoIn` (log lines), in any usual encoding. */
  assertNone(t: ExecutionContext, secrets: readonly string[], alsoIn?: readonly string[]): void
}

export async function recordBytes(t: Pick<ExecutionContext, 'teardown'>, targetPort: number): Promise<ByteRecorder> {
  const connections: Buffer[][] = []
  const questions: Buffer[][] = []
  // Half-open on both sides: a FIN goes through as a FIN, and the relay hides no cut connection from either side.
  const relay = createServer({ noDelay: true, allowHalfOpen: true }, client => {
    const copy: Buffer[] = []
    connections.push(copy)
    const question: Buffer[] = []
    questions.push(question)
    const server = connect({ port: targetPort, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    server.on('data', chunk => copy.push(chunk))
    client.on('data', chunk => question.push(chunk))
    client.pipe(server).pipe(client)
    client.on('close', () => server.destroy())
    server.on('close', hadError => (hadError ? client.resetAndDestroy() : client.destroySoon()))
    for (const socket of [client, server]) socket.on('error', () => {})
  })
  const port = await listen(t, relay)
  const sent = () => connections.map(copy => Buffer.concat(copy))
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    sent,
    asked: () => questions.map(copy => Buffer.concat(copy)),
    get byteCount() {
      return connections.flat().reduce((sum, chunk) => sum + chunk.length, 0)
    },
    assertNone: (test, secrets, alsoIn = []) => {
      const haystacks = [...sent(), Buffer.from(alsoIn.join('\n'))]
      test.deepEqual(findSecrets(haystacks, secrets), [])
    }
  }
}

export interface Leak {
  /** Only the first characters: the failure message must not become a leak itself. */
  readonly secret: string
  readonly form: string
  readonly around: string
}

/** Where any of the secrets, or the last 32 characters of a long one, occurs: plain or encoded. */
export function findSecrets(haystacks: readonly Buffer[], secrets: readonly string[]): Leak[] {
  // Chunk borders of a chunked body may cut a secret in two: look once more with them taken out.
  const texts = haystacks.flatMap(bytes => {
    const text = bytes.toString('latin1')
    const joined = text.replace(/\r\n[0-9a-f]+\r\n/gi, '')
    return joined === text ? [text] : [text, joined]
  })
  const leaks: Leak[] = []
  for (const secret of new Set(secrets)) {
    if (secret.length < 8) throw new Error('A secret of fewer than 8 characters would be found by chance.')
    for (const [form, needle] of encodingsOf(secret)) {
      const text = texts.find(candidate => candidate.includes(needle))
      if (text === undefined) continue
      const at = text.indexOf(needle)
      leaks.push({ secret: `${secret.slice(0, 8)}…`, form, around: text.slice(Math.max(0, at - 60), at) })
      break
    }
  }
  return leaks
}

function encodingsOf(secret: string): ReadonlyMap<string, string> {
  const forms = new Map<string, string>()
  const seen = new Set<string>()
  const add = (form: string, needle: string) => {
    if (needle.length < 8 || seen.has(needle)) return
    seen.add(needle)
    forms.set(form, needle)
  }
  const pieces = secret.length > 64 ? [secret, secret.slice(-32)] : [secret]
  for (const [index, piece] of pieces.entries()) {
    const part = index === 0 ? '' : ' (its end)'
    const bytes = Buffer.from(piece, 'utf8')
    add(`plain${part}`, bytes.toString('latin1'))
    add(`JSON${part}`, JSON.stringify(piece).slice(1, -1))
    add(`percent-encoded${part}`, encodeURIComponent(piece))
    add(`form-encoded${part}`, new URLSearchParams({ '': piece }).toString().slice(1))
    add(`hex${part}`, bytes.toString('hex'))
    add(`HEX${part}`, bytes.toString('hex').toUpperCase())
    for (const shift of [0, 1, 2]) {
      add(`base64, shifted by ${shift}${part}`, base64Inside(bytes, shift, 'base64'))
      add(`base64url, shifted by ${shift}${part}`, base64Inside(bytes, shift, 'base64url'))
    }
  }
  return forms
}

/** The characters that are sure to be there when the bytes stand somewhere inside a longer text that was encoded as a whole. */
function base64Inside(bytes: Buffer, shift: number, encoding: 'base64' | 'base64url'): string {
  const whole = Buffer.concat([Buffer.alloc(shift), bytes])
  const encoded = whole.toString(encoding).replace(/=+$/, '')
  const start = shift === 0 ? 0 : shift + 1
  const end = Math.floor((whole.length * 8) / 6)
  return encoded.slice(start, end)
}
