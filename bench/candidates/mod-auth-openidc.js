/** Apache with mod_auth_openidc, and with the session in an encrypted cookie. The token is in a header of the proxied request. */
import { describeApache, install } from '../lost/programs/mod-auth-openidc.js'
import { startProgram } from '../program.js'
import { PROXIED_PATH } from '../settings.js'

export { install }

/** @type {import('./common.js').Start} */
export function start({ secret, providerUrl }) {
  const directives = `
OIDCSessionType client-cookie
ProxyPass ${PROXIED_PATH} ${providerUrl}${PROXIED_PATH}`
  return startProgram(place => describeApache(place, { secret, providerUrl, origin: place.origin, directives }))
}
