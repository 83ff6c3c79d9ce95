import { callbackPath, localUrlOf } from './addresses.js'
import { newSecret } from './new-secret.js'
import type { Overrides, Values } from './settings.js'

// The settings of a demo. They override the environment and the settings file, which are meant for the real provider. The
// demo has no required settings.

/** The name of this source in messages and in the output of `config`. */
export const demoOrigin = 'demo'

// The secret stays the same in this process, so that reading the settings again does not end the sessions.
let sessionSecret: string | undefined

/** Client, issuer and callback URL are placeholders until the demo identity provider runs. */
export function demoOverrides(): Overrides {
  sessionSecret ??= newSecret()
  return {
    session: { secret: sessionSecret },
    // The rules forward requests to the real platform, which rejects the tokens of the demo.
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
 * Returns the callback URL of a demo. It has the host name that the server announces, because a login must end on the host
 * where it started. The port is 0 if the server chooses a free port. Returns undefined if no browser can open the host.
 */
export function demoCallbackUrl({ port = 0, host }: Values): string | undefined {
  const url = `${localUrlOf({ port, host })}${callbackPath}`
  return URL.canParse(url) ? url : undefined
}
