import { callbackPath, localUrlOf } from './addresses.js'
import { newSecret } from './new-secret.js'
import type { Overrides, Values } from './settings.js'

// The settings of a demo. They outrank whatever the environment and files say of the real provider, and no setting has
// to be given.

/** How messages and `config` name the source of these settings. */
export const demoOrigin = 'demo'

// One for the process: settings that are read again must not end the sessions.
let sessionSecret: string | undefined

/** Client, issuer and callback URL are placeholders until the demo identity provider runs. */
export function demoOverrides(): Overrides {
  sessionSecret ??= newSecret()
  return {
    session: { secret: sessionSecret },
    // Rules lead to the real platform, which knows no token of the demo.
    proxy: { routes: null },
    platform: {
      issuer: 'http://127.0.0.1',
      clientId: 'demo',
      clientSecret: 'demo',
      callbackUrl: `http://localhost${callbackPath}`,
      authorizationEndpoint: null,
      tokenEndpoint: null,
      userinfoEndpoint: null,
      revocationEndpoint: null,
      endSessionEndpoint: null,
      clientAuthentication: null
    }
  }
}

/**
 * The callback URL of a demo: the address that the server announces, so that a login ends under the host name under
 * which it began. Its port is 0 where the server takes any free port. Undefined when no browser can open the host.
 */
export function demoCallbackUrl({ port = 0, host }: Values): string | undefined {
  const url = `${localUrlOf({ port, host })}${callbackPath}`
  return URL.canParse(url) ? url : undefined
}
