import type { Config } from '../../../config/settings.js'
import type { Mode } from '../../../modes/mode.js'
import { type Finding, findingsFor } from '../finding.js'

const { ok, warning } = findingsFor('scopes')

const WRITE_SCOPE = /:(write|create|update|delete|all)\b/

/**
 * Reports the access that pages get with the public token (in dual mode, the access token for pages). If the public
 * scopes are no narrower than the internal scopes, the validation of the settings already warns.
 */
export function scopes({ platform: { internalScopes, publicScopes } }: Config, mode: Mode): Finding[] {
  if (!mode.offersPublicToken) return [ok(`The token (${mode.loginScope}) stays on the server.`)]
  const writing = publicScopes.filter(scope => WRITE_SCOPE.test(scope))
  if (writing.length > 0) {
    const message = `Every script in your pages has the public token, which allows changes (${writing.join(' ')}).`
    return [warning(message, 'Put such scopes only into platform.internalScopes.')]
  }
  if (internalScopes.every(scope => publicScopes.includes(scope))) return []
  return [ok(`Pages get ${publicScopes.join(' ')}, which is less than the server has (${internalScopes.join(' ')}).`)]
}
