import { withoutUser } from '../../config/addresses.js'
import { outboundProxy } from '../../config/outbound-proxy.js'
import { about, type Finding } from './finding.js'
import type { Provider } from './provider.js'

const { ok, failed } = about('proxy')

/** Names the proxy of each call to the provider, if the environment asks for one. */
export async function outbound({ idp }: Provider): Promise<Finding[]> {
  const { tokenEndpoint, userinfoEndpoint, revocationEndpoint } = await idp.metadata()
  const addresses = [tokenEndpoint, userinfoEndpoint, revocationEndpoint].filter(address => address !== undefined)
  const origins = [...new Set(addresses.map(address => new URL(address).origin))]
  const proxies = new Map(origins.map(origin => [origin, outboundProxy(origin)]))
  return origins.flatMap(origin => {
    const proxy = proxies.get(origin)
    if (proxy === undefined) {
      const others = [...proxies.values()].some(other => other !== undefined)
      return others ? [ok(`Calls to ${origin} go straight there (NO_PROXY).`)] : []
    }
    const shown = withoutUser(proxy)
    if (URL.canParse(proxy) && /^https?:$/.test(new URL(proxy).protocol)) {
      return [ok(`Calls to ${origin} go through the proxy ${shown}, which the environment names.`)]
    }
    return [failed(`The proxy ${shown} is no http or https address.`, 'Correct HTTPS_PROXY: http://host:port.')]
  })
}
