import type { Environment } from '../../../config/environment.js'
import { type Finding, findingsFor } from '../finding.js'

/** Reports a failure if the environment tells Node not to verify TLS certificates. */
export function tls(env: Environment): Finding[] {
  if (env.NODE_TLS_REJECT_UNAUTHORIZED !== '0') return []
  const message =
    'NODE_TLS_REJECT_UNAUTHORIZED=0 disables the verification of TLS certificates, so others on the network can read the client secret and the tokens.'
  const next = 'Remove it. To trust your own certificate authority, set NODE_EXTRA_CA_CERTS.'
  return [findingsFor('tls').failed(message, next)]
}
