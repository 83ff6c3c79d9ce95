/**
 * The connections to one upstream host. Each one is an undici Client, which carries one request at a time. undici's own Pool does
 * not tell which connection carries a request, so it could neither skip interim responses nor tell that a connection was reused.
 */
import type { Socket } from 'node:net'
import { type buildConnector, Client } from 'undici'

export interface Connection {
  readonly client: Client
  isOpen: boolean
  isBusy: boolean
  /** The number of requests that were sent. */
  requestCount: number
  /** What has arrived of the response, as long as its final head may not have begun. */
  held: Buffer | undefined
  /**
   * Called about twice a second while the connection carries a request. In a Set, such functions would survive their requests: V8
   * replaces the table of a Set after some additions, and each table refers to the next one. So a table in the old generation
   * keeps all later ones, with what they contain, until the next full collection.
   */
  check: (() => void) | undefined
}

export type Connections = ReturnType<typeof createConnections>

// The time limits of undici are disabled, and `silenceMs` is used instead. With its own limits, undici would not end an
// upload that stalls, but would end a long upload even while data is being transferred.
const NO_TIMEOUTS = { headersTimeout: 0, bodyTimeout: 0 }

export function createConnections(origin: string, connect: buildConnector.connector) {
  const all = new Set<Connection>()
  const idle: Connection[] = []

  /** Opens a connection for one request. */
  function open(): Connection {
    const client = new Client(origin, { ...NO_TIMEOUTS, connect: connectAndFilter })
    const connection: Connection = {
      client,
      isOpen: false,
      isBusy: true,
      requestCount: 0,
      held: undefined,
      check: undefined
    }
    all.add(connection)
    client.on('connect', () => {
      connection.isOpen = true
    })
    // undici needs a turn of the event loop after a response before the connection can be used again.
    client.on('drain', () => release(connection))
    // If the upstream closes an idle connection at the moment at which a request takes it, undici connects again.
    client.on('disconnect', () => {
      connection.isOpen = false
      if (!connection.isBusy) forget(connection)
    })
    return connection

    function connectAndFilter(options: buildConnector.Options, callback: buildConnector.Callback) {
      connect(options, (...result) => {
        connection.requestCount = 0
        // undici connects again after an aborted request, whose response must not be joined with what comes now.
        connection.held = undefined
        if (result[1]) skipInterimResponses(result[1], connection)
        callback(...result)
      })
    }
  }

  function release(connection: Connection): void {
    connection.isBusy = false
    if (connection.isOpen) idle.push(connection)
    else forget(connection)
  }

  function forget(connection: Connection): void {
    all.delete(connection)
    const index = idle.indexOf(connection)
    if (index !== -1) idle.splice(index, 1)
  }

  return {
    all,
    open,
    /** Returns the connection that was used last and is idle now, or opens one. */
    take(): Connection {
      const connection = idle.pop() ?? open()
      connection.isBusy = true
      return connection
    },
    /** Returns a connection of which undici has not used anything. */
    release,
    /** Closes all connections immediately. */
    close: () => Promise.all([...all].map(({ client }) => client.destroy()))
  }
}

const NOTHING = Buffer.alloc(0)

/** Call this function when the head of a request is about to be sent. */
export function requestStarts(connection: Connection): void {
  connection.requestCount += 1
  connection.held = NOTHING
}

/**
 * True if the upstream may have closed the connection before it has read the request: the connection was used before, and no byte of
 * a response has arrived.
 */
export function mayBeUnread({ requestCount, held }: Connection): boolean {
  return requestCount > 1 && held === NOTHING
}

const INTERIM = /^HTTP\/1\.[01] 1(?!01)\d\d[ \r\n]/
// Lines may end without a carriage return (RFC 9112 section 2.2). If such an end were overlooked, the next head would be skipped as a
// part of this one, and the content after it would become the response.
const INTERIM_HEADS = /^(?:HTTP\/1\.[01] 1(?!01)\d\d(?=[ \r\n])[\s\S]*?\n\r?\n)*/
const INTERIM_LENGTH = 'HTTP/1.1 100 '.length
const MAX_HELD_BYTES = 16 * 1024

/**
 * Removes interim responses from what undici reads (RFC 9110 section 15.2). undici closes the connection when it reads a `100 Continue`,
 * although an upstream may send one unasked (nodejs/undici#197; unchanged in 7.30 and 8.13). Can be removed when undici skips it.
 */
function skipInterimResponses(socket: Socket, connection: Connection): void {
  const read = socket.read
  socket.read = (size?: number): Buffer | null => {
    for (;;) {
      const chunk: Buffer | null = read.call(socket, size)
      const { held } = connection
      if (chunk === null || held === undefined) return chunk
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      const rest = afterInterimResponses(bytes)
      const isFinal = !mayBeInterim(rest) || rest.length > MAX_HELD_BYTES
      connection.held = isFinal ? undefined : rest
      if (isFinal) return rest
    }
  }
}

function afterInterimResponses(bytes: Buffer): Buffer {
  const heads = mayBeInterim(bytes) ? INTERIM_HEADS.exec(bytes.toString('latin1')) : null
  return heads ? bytes.subarray(heads[0].length) : bytes
}

/** False if the bytes are the beginning of something else than an interim response. */
function mayBeInterim(bytes: Buffer): boolean {
  if (bytes.length < INTERIM_LENGTH) return true
  return bytes[9] === 0x31 && INTERIM.test(bytes.toString('latin1', 0, INTERIM_LENGTH))
}
