// A network whose hosts can be separated from each other. A host is a loopback address from which its connections come.
// Every server is reached through a proxy, which recognizes the host of a client by this address. Linux accepts each
// address of 127.0.0.0/8.
import { fileURLToPath } from 'node:url'
import type { Teardown } from '../../helpers/scope.js'
import { startTcpProxy, type TcpProxy } from '../../helpers/tcp-proxy.js'

export type Network = ReturnType<typeof createNetwork>

/** Settings for a Node program, so that its connections come from this address. */
export function environmentAt(host: string): Record<string, string> {
  const module = fileURLToPath(new URL('./source-address.js', import.meta.url))
  return { NODE_OPTIONS: `--import=${module}`, TEST_SOURCE_ADDRESS: host }
}

export function createNetwork(scope: Teardown) {
  const proxies = new Map<string, TcpProxy>()
  return {
    /** Opens the port under which all other hosts reach this host. `connectTo` sets the port of its server. */
    async openPort(host: string) {
      const proxy = await startTcpProxy(scope)
      proxies.set(host, proxy)
      return proxy
    },
    /**
     * Separates these hosts from all others. As on a broken line, connections stay open, and their bytes are delayed until
     * `mend`.
     */
    separate(hosts: ReadonlySet<string>) {
      for (const [host, proxy] of proxies) proxy.hold(address => hosts.has(address) !== hosts.has(host))
    },
    mend() {
      for (const proxy of proxies.values()) proxy.hold(() => false)
    }
  }
}
