import type { Environment } from '../../config/environment.js'
import { about, type Finding } from './finding.js'

/** Whether Node was told to trust anybody. */
export function tls(env: Environment): Finding[] {
  if (env.NODE_TLS_REJECT_UNAUTHORIZED !== '0') return []
  const message = 'NODE_TLS_REJECT_UNAUTHORIZED=0 lets anybody on the way read the client secret and the tokens.'
  const next = 'Remove it; an authority of your own goes into NODE_EXTRA_CA_CERTS.'
  return [about('tls').failed(message, next)]
}
