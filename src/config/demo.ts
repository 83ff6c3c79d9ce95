import { newSecret } from './secrets.js'
import type { Settings, Values } from './settings.js'
import { callbackPath, localUrlOf } from './urls.js'

// The settings of a demo. They override the environment and the settings file, which are meant for the real provider. A
// demo therefore starts without any other setting.

/** The name of this source in messages and in the output of `config`. */
export const demoSource = 'demo'

// This session secret stays the same while the process runs, so that sessions stay valid when the settings are read
// again.
let sessionSecret: string | undefined

/**
 * Returns the settings of a demo. The client, the issuer and the callback URL are placeholders, which are replaced when
 * the demo identity provider starts.
 */
export function demoOverrides(): Settings {
  sessionSecret ??= newSecret()
  return {
    session: { secret: sessionSecret },
    // Rules from the environment or a settings file are not used, because their targets would reject the tokens of the demo.
    apiProxy: { rules: null },
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
      clientAuthMethod: null,
      clientKey: null
    }
  }
}

/** The settings of a demo that all other sources override. Everyone may sign in at a demo. */
export const demoDefaults: Settings = { access: { allow: ['*'] } }

/**
 * Returns the callback URL of a demo. It has the host name that the server prints when it starts, because a login must
 * be completed on the host on which it began. If the system chooses a free port, the port in the URL is 0. Returns
 * undefined if browsers cannot open the host.
 */
export function demoCallbackUrl({ port = 0, host }: Values): string | undefined {
  const url = `${localUrlOf({ port, host })}${callbackPath}`
  return URL.canParse(url) ? url : undefined
}
