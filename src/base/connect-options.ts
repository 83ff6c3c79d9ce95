// Node's default of 250 ms is shorter than a TCP handshake with a distant or busy server. Every address that answers later
// would be given up, and the connection would fail although the time limit is far away.
const SHORTEST_MS = 250
// A dead address must not use up the time limit, because another address may work.
const LONGEST_MS = 2500

/**
 * Returns the options of net.connect and tls.connect for hosts with several IP addresses: each address gets a quarter of
 * the time limit for connecting, from 250 to 2,500 ms, and then the next address is tried (RFC 8305 section 5).
 */
export function connectOptions(limitMs: number) {
  const quarter = Math.round(limitMs / 4)
  return {
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: Math.min(LONGEST_MS, Math.max(SHORTEST_MS, quarter))
  }
}
