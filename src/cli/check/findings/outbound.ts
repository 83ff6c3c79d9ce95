import { withoutUser } from '../../../config/addresses.js'
import { outboundProxy } from '../../../config/outbound-proxy.js'
import { type Finding, findingsFor } from '../finding.js'
import type { Provider } from '../provider.js'

const { ok, failed } = findingsFor('proxy')

/** Reports the proxy for calls to each origin of the provider, if the environment configures one. */
export async function outbound({ idp }: Provider): Promise<Finding[]> {
  const { tokenEndpoint, userinfoEndpoint, revocationEndpoint } = await idp.metadata()
  const addresses = [tokenEndpoint, userinfoEndpoint, revocationEndpoint].filter(address => address !== undefined)
  const origins = [...new Set(addresses.map(address => new URL(address).origin))]
  const proxies = new Map(origins.map(origin => [origin, outboundProxy(origin)]))
  return origins.flatMap(origin => {
    const proxy = proxies.get(origin)
    if (proxy === undefined) {
      const usesProxy = [...proxies.values()].some(other => other !== undefined)
      return usesProxy ? [ok(`Calls to ${origin} use no proxy (NO_PROXY).`)] : []
    }
    const shown = withoutUser(proxy)
    if (URL.canParse(proxy) && /^https?:$/.test(new URL(proxy).protocol)) {
      return [ok(`Calls to ${origin} go through the proxy ${shown} from the environment.`)]
    }
    return [
      failed(
        `The proxy ${shown} is not an http or https address.`,
        'Set HTTPS_PROXY to an address such as http://host:port.'
      )
    ]
  })
}
