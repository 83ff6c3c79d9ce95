import { connect } from 'node:tls'
import type { RedisAddress } from '../../config/redis-address.js'
import type { Config } from '../../config/settings.js'
import { tlsOptions } from '../../store/redis-client.js'
import { errorCode } from '../../support/error-code.js'

// With TLS 1.3, Redis refuses a client certificate after the handshake (RFC 8446 section 4.4.2.4).
const LATE_ALERT_MS = 500

/**
 * Returns the code of the error with which TLS fails at the first host of `address`, or undefined if TLS works. The Redis
 * client only reports that the connection was closed if TLS fails late, or fails at a sentinel.
 */
export function tlsProblem(
  { hosts }: RedisAddress,
  { redisTls }: Pick<Config, 'redisTls'>,
  timeoutMs: number
): Promise<string | undefined> {
  return new Promise(resolve => {
    const socket = connect({ ...hosts[0], ...tlsOptions(redisTls) })
    let timer = setTimeout(() => end(undefined), timeoutMs)
    function end(code: string | undefined) {
      clearTimeout(timer)
      socket.destroy()
      resolve(code)
    }
    socket.once('error', error => end(errorCode(error)))
    socket.once('close', () => end(undefined))
    socket.once('secureConnect', () => {
      clearTimeout(timer)
      timer = setTimeout(() => end(undefined), Math.min(LATE_ALERT_MS, timeoutMs))
    })
  })
}
