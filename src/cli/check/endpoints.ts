import type { Config } from '../../config/settings.js'
import { createMetadata, type ProviderMetadata } from '../../idp/metadata.js'
import type { Transport } from '../../idp/transport.js'
import { type Asked, findingOfError } from './answer.js'
import { about, type Finding } from './finding.js'
import type { Provider } from './provider.js'

const { ok, warning, failed } = about('endpoints')

/** Where the endpoints are. Without that nothing else of the provider can be tried. */
export async function endpoints({ config, idp, transport }: Provider): Promise<Finding[]> {
  const { issuer } = config.platform
  if (issuer === undefined) return configured(config)
  const asked: Asked = {
    check: 'endpoints',
    endpoint: 'The discovery document',
    url: `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
    setting: 'platform.issuer',
    timeoutSeconds: config.platform.timeoutSeconds
  }
  let metadata: ProviderMetadata
  try {
    metadata = await idp.metadata()
  } catch (error) {
    return [findingOfError(error, asked)]
  }
  return [ok(`${issuer} names its endpoints.`), ...(await disagreements(config, metadata, transport))]
}

const needed = ['authorizationEndpoint', 'tokenEndpoint', 'userinfoEndpoint'] as const
const keys = [...needed, 'revocationEndpoint', 'endSessionEndpoint'] as const

function configured({ platform }: Config): Finding[] {
  const own = needed.filter(key => platform[key] !== undefined)
  const builtIn = needed.filter(key => platform[key] === undefined)
  if (own.length === 0) return [ok('They are those of Autodesk Platform Services.')]
  if (builtIn.length === 0) return [ok('They are those of the settings.')]
  return [
    failed(
      `Set in the settings: ${listed(own)}; those of Autodesk Platform Services: ${listed(builtIn)}.`,
      'Set all three for one provider, or platform.issuer.'
    )
  ]
}

function listed(names: readonly string[]): string {
  return names.map(name => `platform.${name}`).join(', ')
}

/** What the document says in place of an endpoint that was set. */
async function disagreements(config: Config, metadata: ProviderMetadata, transport: Transport): Promise<Finding[]> {
  const { platform } = config
  const set = keys.filter(key => platform[key] !== undefined && platform[key] !== 'none')
  const findings = set.map(async key => {
    const discovered = await createMetadata({ ...platform, [key]: undefined }, transport)().then(
      found => found[key],
      // It names none; that may be why one was set.
      () => undefined
    )
    if (discovered === undefined || discovered === metadata[key]) return []
    const address = new URL(discovered).href.slice(0, 200)
    return [
      warning(
        `platform.${key} is ${metadata[key]}, but the discovery document names ${address}.`,
        `Take platform.${key} out of the settings, unless it is meant.`
      )
    ]
  })
  return (await Promise.all(findings)).flat()
}
