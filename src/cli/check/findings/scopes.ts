import type { Config } from '../../../config/settings.js'
import type { Mode } from '../../../modes/mode.js'
import { type Finding, findingsFor } from '../finding.js'

const { ok, warning } = findingsFor('scopes')

const CHANGES_THINGS = /:(write|create|update|delete|all)\b/

/**
 * Tells what pages may do with the token they are given. The settings themselves warn when the public scopes are no
 * narrower than the internal ones.
 */
export function scopes({ platform: { internalScopes, publicScopes } }: Config, mode: Mode): Finding[] {
  if (!mode.offersPublicToken) return [ok(`The token (${mode.loginScope}) stays on the server.`)]
  const writing = publicScopes.filter(scope => CHANGES_THINGS.test(scope))
  if (writing.length > 0) {
    const message = `Every script in your pages has the public token, and it may change things (${writing.join(' ')}).`
    return [warning(message, 'Keep such scopes in platform.internalScopes alone.')]
  }
  if (internalScopes.every(scope => publicScopes.includes(scope))) return []
  return [ok(`Pages get ${publicScopes.join(' ')}, less than the server (${internalScopes.join(' ')}).`)]
}
