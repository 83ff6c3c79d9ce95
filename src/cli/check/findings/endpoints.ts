import type { Config } from '../../../config/settings.js'
import { createMetadata, discoveryUrl, type ProviderMetadata } from '../../../provider/metadata.js'
import type { Transport } from '../../../provider/transport.js'
import { type Finding, findingsFor } from '../finding.js'
import type { Provider } from '../provider.js'
import { type CheckedRequest, findingOfError } from '../request-errors.js'

const { ok, warning, failed } = findingsFor('endpoints')

/** Checks that the addresses of the endpoints are known. All other checks of the provider need these addresses. */
export async function endpoints({ config, idp, transport }: Provider): Promise<Finding[]> {
  const { issuer } = config.platform
  if (issuer === undefined) return withoutIssuer(config)
  const request: CheckedRequest = {
    check: 'endpoints',
    endpoint: 'The discovery document',
    url: discoveryUrl(issuer),
    setting: 'platform.issuer',
    timeoutSeconds: config.platform.timeoutSeconds
  }
  let metadata: ProviderMetadata
  try {
    metadata = await idp.metadata()
  } catch (error) {
    return [findingOfError(error, request)]
  }
  return [
    ok(`The discovery document of ${issuer} contains the endpoints.`),
    ...(await disagreements(config, metadata, transport))
  ]
}

const needed = ['authorizationEndpoint', 'tokenEndpoint', 'userinfoEndpoint'] as const
const keys = [...needed, 'revocationEndpoint', 'endSessionEndpoint'] as const

function withoutIssuer({ platform }: Config): Finding[] {
  const own = needed.filter(key => platform[key] !== undefined)
  const builtIn = needed.filter(key => platform[key] === undefined)
  if (own.length === 0) return [ok('The endpoints are those of Autodesk Platform Services.')]
  if (builtIn.length === 0) return [ok('The endpoints come from the settings.')]
  return [
    failed(
      `The settings contain ${listed(own)}, but Autodesk Platform Services is still used for ${listed(builtIn)}.`,
      'Set all three addresses for one provider, or set platform.issuer.'
    )
  ]
}

function listed(names: readonly string[]): string {
  return names.map(name => `platform.${name}`).join(', ')
}

/** Warns about each endpoint that has one address in the settings and another address in the discovery document. */
async function disagreements(config: Config, metadata: ProviderMetadata, transport: Transport): Promise<Finding[]> {
  const { platform } = config
  const set = keys.filter(key => platform[key] !== undefined && platform[key] !== 'none')
  const findings = set.map(async key => {
    const discovered = await createMetadata({ ...platform, [key]: undefined }, transport)().then(
      found => found[key],
      // The document does not contain this endpoint, so there is nothing to compare.
      () => undefined
    )
    if (discovered === undefined || discovered === metadata[key]) return []
    const address = new URL(discovered).href.slice(0, 200)
    return [
      warning(
        `platform.${key} is ${metadata[key]}, but the discovery document has ${address}.`,
        `Remove platform.${key} from the settings, unless the difference is intended.`
      )
    ]
  })
  return (await Promise.all(findings)).flat()
}
