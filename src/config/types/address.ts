import { REJECTED, type ValueType } from './value-type.js'

/** The parsed address of a listener. */
export interface ListenAddress {
  /** A host name or an IP address. Undefined for all addresses of the machine. */
  readonly host: string | undefined
  /** With 0, the system chooses a free port. */
  readonly port: number
  /** The address as it was written. */
  readonly text: string
}

const ADDRESS = /^(?:\[([0-9A-Fa-f:.]+(?:%\w+)?)\]|([A-Za-z0-9._-]*)):(\d{1,5})$/

/** The type of an address on which the server listens. */
export const listenAddress: ValueType<ListenAddress, string> = {
  allowed: 'an address such as 127.0.0.1:9090, [::1]:9090 or :9090 (all addresses of this machine)',
  json: { type: 'string', pattern: ADDRESS.source },
  parse(written) {
    const [, ipv6, name, port] = (typeof written === 'string' && ADDRESS.exec(written)) || []
    if (typeof written !== 'string' || Number(port) > 65_535) return REJECTED
    if (port === undefined) return /^\d+$/.test(written) ? { reason: 'it is only a port' } : REJECTED
    return { value: { host: ipv6 ?? (name || undefined), port: Number(port), text: written } }
  },
  write: ({ text }) => text
}
