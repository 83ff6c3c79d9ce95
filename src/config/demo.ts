import type { SettingKey, Settings, Values } from './settings.js'
import type { Given, SettingsFinding } from './sources/layer.js'
import { newSecret } from './types/secrets.js'
import { callbackPath, localUrlOf } from './types/urls.js'

type Sources = Readonly<Record<SettingKey, string>>

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

/** Rules from other sources than the flags are not used, because their targets would reject the tokens of the demo. */
export const demoIgnores = 'apiProxy.rules'

/** The settings of a demo that all other sources override. Everyone may sign in at a demo. */
export const demoDefaults: Settings = { access: { allow: ['*'] } }

/**
 * Returns the callback URL of a demo, and the warnings that only a demo has. The URL has the host name that the server
 * prints when it starts, because a login must be completed on the host on which it began. If the system chooses a free port, the
 * port in the URL is 0.
 * @param ignoredRules the rules of the API proxy from sources other than the flags
 */
export function finishDemo(values: Values, sources: Sources, ignoredRules: Given | undefined) {
  const { port = 0, host, 'platform.callbackUrl': given } = values
  const url = `${localUrlOf({ port, host })}${callbackPath}`
  const isOwn = sources['platform.callbackUrl'] === demoSource && URL.canParse(url)
  const isIgnored = ignoredRules !== undefined && !sources[demoIgnores].startsWith('flag')
  const message = 'is not used in a demo, because its targets would reject the tokens of the demo. Use --api-proxy.'
  const findings: readonly SettingsFinding[] = isIgnored
    ? [{ key: demoIgnores, source: ignoredRules.source, message, isWarning: true }]
    : []
  return { values: { ...values, 'platform.callbackUrl': isOwn ? url : given }, findings }
}
