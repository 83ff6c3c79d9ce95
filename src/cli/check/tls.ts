import type { Environment } from '../../config/environment.js'
import { about, type Finding } from './finding.js'

/** Fails if Node was told not to check TLS certificates. */
export function tls(env: Environment): Finding[] {
  if (env.NODE_TLS_REJECT_UNAUTHORIZED !== '0') return []
  const message =
    'NODE_TLS_REJECT_UNAUTHORIZED=0 switches off the check of TLS certificates, so others on the network can read the client secret and the tokens.'
  const next = 'Remove it. For a certificate authority of your own, set NODE_EXTRA_CA_CERTS.'
  return [about('tls').failed(message, next)]
}
