// A TCP relay in front of the server that keeps a copy of every byte in both directions.
import { connect, createServer } from 'node:net'
import type { ExecutionContext } from 'ava'
import { listen } from './ports.js'

export async function recordBytes(t: Pick<ExecutionContext, 'teardown'>, targetPort: number) {
  const connections: Buffer[][] = []
  const requests: Buffer[][] = []
  // Half-open connections are allowed on both sides, so a FIN is relayed as a FIN and neither side misses a cut
  // connection.
  const relay = createServer({ noDelay: true, allowHalfOpen: true }, client => {
    const copy: Buffer[] = []
    connections.push(copy)
    const request: Buffer[] = []
    requests.push(request)
    const server = connect({ port: targetPort, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    server.on('data', chunk => copy.push(chunk))
    client.on('data', chunk => request.push(chunk))
    client.pipe(server).pipe(client)
    client.on('close', () => server.destroy())
    server.on('close', hadError => (hadError ? client.resetAndDestroy() : client.destroySoon()))
    for (const socket of [client, server]) socket.on('error', () => {})
  })
  const port = await listen(t, relay)
  /** The bytes that the server sent, one buffer for each connection. */
  const sent = () => connections.map(copy => Buffer.concat(copy))
  return {
    /** Clients connect to this URL instead of the server's. */
    url: `http://127.0.0.1:${port}`,
    port,
    sent,
    /** The bytes that the clients sent, one buffer for each connection. */
    received: () => requests.map(copy => Buffer.concat(copy)),
    /**
     * Fails the test if a secret is in the bytes that the server sent or in `alsoIn` (log lines), in any usual encoding.
     */
    assertNone(test: ExecutionContext, secrets: readonly string[], alsoIn: readonly string[] = []) {
      const haystacks = [...sent(), Buffer.from(alsoIn.join('\n'))]
      test.deepEqual(findSecrets(haystacks, secrets), [])
    }
  }
}

/** The shortest secret, in characters. */
const BEGIN = 8

interface Leak {
  /** Only the first characters, so that a failure message does not reveal the secret. */
  readonly secret: string
  readonly form: string
  readonly around: string
}

/**
 * Finds the secrets in plain text and in the usual encodings. Of a long secret it looks for the last 32 characters, which are
 * also found where only the end of the secret was sent.
 */
export function findSecrets(haystacks: readonly Buffer[], secrets: readonly string[]): Leak[] {
  // The border between two chunks of a chunked body may cut a secret in two, so the text without chunk borders is
  // searched too.
  const texts = haystacks.flatMap(bytes => {
    const text = bytes.toString('latin1')
    const joined = text.replace(/\r\n[0-9a-f]+\r\n/gi, '')
    return joined === text ? [text] : [text, joined]
  })
  // Thousands of secrets in megabytes of text: each text is read once, and only what begins like a secret is compared.
  const needles = new Map<string, { readonly secret: string; readonly form: string; readonly needle: string }[]>()
  for (const secret of new Set(secrets)) {
    if (secret.length < BEGIN) throw new Error(`A secret of fewer than ${BEGIN} characters would be found by chance.`)
    for (const [form, needle] of encodingsOf(secret)) {
      const begin = needle.slice(0, BEGIN)
      needles.set(begin, [...(needles.get(begin) ?? []), { secret, form, needle }])
    }
  }
  const leaks = new Map<string, Leak>()
  for (const text of texts) {
    for (let at = 0; at <= text.length - BEGIN; at++) {
      for (const { secret, form, needle } of needles.get(text.slice(at, at + BEGIN)) ?? []) {
        if (leaks.has(secret) || !text.startsWith(needle, at)) continue
        leaks.set(secret, { secret: `${secret.slice(0, BEGIN)}…`, form, around: text.slice(Math.max(0, at - 60), at) })
      }
    }
  }
  return [...leaks.values()]
}

function encodingsOf(secret: string): ReadonlyMap<string, string> {
  const forms = new Map<string, string>()
  const seen = new Set<string>()
  const add = (form: string, needle: string) => {
    if (needle.length < BEGIN || seen.has(needle)) return
    seen.add(needle)
    forms.set(form, needle)
  }
  const piece = secret.length > 64 ? secret.slice(-32) : secret
  const bytes = Buffer.from(piece, 'utf8')
  add('plain', bytes.toString('latin1'))
  add('JSON', JSON.stringify(piece).slice(1, -1))
  add('percent-encoded', encodeURIComponent(piece))
  add('form-encoded', new URLSearchParams({ '': piece }).toString().slice(1))
  add('hex', bytes.toString('hex'))
  add('HEX', bytes.toString('hex').toUpperCase())
  for (const shift of [0, 1, 2]) {
    add(`base64, shifted by ${shift}`, base64Inside(bytes, shift, 'base64'))
    add(`base64url, shifted by ${shift}`, base64Inside(bytes, shift, 'base64url'))
  }
  return forms
}

/**
 * The base64 characters of `bytes` that do not depend on the bytes before and after them. `shift` is the number of bytes
 * before them, modulo 3.
 */
function base64Inside(bytes: Buffer, shift: number, encoding: 'base64' | 'base64url'): string {
  const whole = Buffer.concat([Buffer.alloc(shift), bytes])
  const encoded = whole.toString(encoding).replace(/=+$/, '')
  const start = shift === 0 ? 0 : shift + 1
  const end = Math.floor((whole.length * 8) / 6)
  return encoded.slice(start, end)
}
