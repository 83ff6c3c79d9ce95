/** Creates single mode (one access token per session) or dual mode (two access tokens), as configured. */
import type { Config } from '../config/settings.js'
import type { IdentityProvider } from '../provider/client.js'
import { createDualMode } from './dual.js'
import type { ModeParts } from './grants.js'
import type { Mode } from './mode.js'
import { createSingleMode } from './single.js'

/** @example const { state } = await createMode(config, idp, Date.now).exchangeCode(grant) */
export function createMode(config: Config, idp: IdentityProvider, now: () => number): Mode {
  const { platform, logout } = config
  const { clientId, pkce, backChannelLogout: keepsSid } = platform
  const parts: ModeParts = { idp, now, clientId, pkce, keepsIdToken: logout === 'idp', keepsSid }
  return config.mode === 'dual' ? createDualMode(platform, parts) : createSingleMode(platform, parts)
}
