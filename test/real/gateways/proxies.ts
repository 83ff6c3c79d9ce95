// The samples in docs/deploy/reverse-proxy.md, each with its program: the largest session, an encoded slash and the health check.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createBrowser } from '../../helpers/browser.js'
import { publicOrigin } from '../../helpers/config.js'
import { eventually } from '../../helpers/eventually.js'
import { fencedBlocks } from '../../helpers/markdown.js'
import { freePort } from '../../helpers/ports.js'
import { sendRaw } from '../../helpers/raw.js'
import { readText } from '../../helpers/repository.js'
import type { Teardown } from '../../helpers/scope.js'
import { openCallback, startLogin, startTestServer } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { startUpstream } from '../../helpers/upstream.js'
import { sessionHeader } from '../../web/support.js'
import { type Command, hasStatus, isInstalled, startService } from '../programs.js'
import type { Report } from '../suite.js'

export interface Proxy {
  /** The executable, and the language of the sample. */
  readonly name: 'haproxy' | 'apache' | 'lighttpd'
  readonly version: readonly [command: string, option: string]
  /** Completes the sample. Returns the command that runs it on this port. */
  command(sample: string, port: number, t: Teardown): Promise<Command>
  /** Resolves to true if the proxy calls the server healthy, if it asks. */
  isHealthy?(port: number): Promise<boolean>
}

export const APACHE_MODULES = '/usr/lib/apache2/modules'

/** Completes a configuration of Apache with what it needs to run in a folder of its own. Returns the folder and the command. */
export async function apacheWith(
  t: Teardown,
  port: number,
  modules: readonly string[],
  lines: (folder: string) => readonly string[]
): Promise<{ readonly folder: string; readonly command: Command }> {
  const folder = await tempFolder(t)
  const loaded = ['mpm_event', 'authz_core', 'unixd', ...modules]
    .map(name => [name, `${APACHE_MODULES}/mod_${name}.so`])
    .filter(([, file = '']) => existsSync(file))
    .map(([name, file]) => `LoadModule ${name}_module ${file}`)
  const own = [`ServerRoot ${folder}`, 'ServerName app.example.com', `Listen 127.0.0.1:${port}`]
  const paths = [`PidFile ${folder}/pid`, `ErrorLog ${folder}/error.log`, `DefaultRuntimeDir ${folder}`]
  const main = await tempFolder(t, { 'apache2.conf': [...loaded, ...own, ...paths, ...lines(folder)].join('\n') })
  return { folder, command: { command: 'apache2', args: ['-DFOREGROUND', '-f', `${main}/apache2.conf`] } }
}

export const proxies: readonly Proxy[] = [
  {
    name: 'haproxy',
    version: ['haproxy', '-v'],
    async command(sample, port, t) {
      const more = [
        'defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s',
        `frontend here\n  bind 127.0.0.1:${port}\n  default_backend platform_auth_server`,
        '  stats enable\n  stats uri /statistics'
      ]
      const folder = await tempFolder(t, { 'haproxy.cfg': `${more.join('\n')}\n${sample}` })
      return { command: 'haproxy', args: ['-db', '-f', `${folder}/haproxy.cfg`] }
    },
    async isHealthy(port) {
      const statistics = await (await fetch(`http://127.0.0.1:${port}/statistics;csv`)).text()
      return /,L7OK,200,/.test(statistics)
    }
  },
  {
    name: 'apache',
    version: ['apache2', '-v'],
    command: async (sample, port, t) => (await apacheWith(t, port, ['proxy', 'proxy_http'], () => [sample])).command
  },
  {
    name: 'lighttpd',
    version: ['lighttpd', '-v'],
    async command(sample, port, t) {
      const folder = await tempFolder(t, {})
      const own = [`server.port = ${port}`, 'server.bind = "127.0.0.1"', `server.document-root = "${folder}"`]
      const main = await tempFolder(t, { 'lighttpd.conf': [...own, sample].join('\n') })
      return { command: 'lighttpd', args: ['-D', '-f', `${main}/lighttpd.conf`] }
    }
  }
]

export const missingProxy = ({ version: [command] }: Proxy) =>
  isInstalled(command) ? undefined : `${command} is not installed`

/** @param name the language of the sample */
function sampleOf(name: string, port: number): string {
  const [block] = fencedBlocks(readText('docs/deploy/reverse-proxy.md')).filter(
    ({ language, text }) => language === name && text.includes('server-1')
  )
  if (!block) throw new Error(`docs/deploy/reverse-proxy.md has no sample for ${name}`)
  // lighttpd needs an address and a port of their own.
  return block.text
    .replaceAll('server-1:8080', `127.0.0.1:${port}`)
    .replace('"server-1"', '"127.0.0.1"')
    .replace('"8080"', `"${port}"`)
}

export async function tryProxy(proxy: Proxy, { title, check }: Report, t: Teardown): Promise<void> {
  const { stdout } = spawnSync(proxy.version[0], [proxy.version[1]], { encoding: 'utf8' })
  title(`${proxy.name} ${/\d+\.\d+\.\d+/.exec(stdout)?.[0]}`)
  const upstream = await startUpstream(t)
  const rules = [`GET /api/files/** ${upstream.origin}/**`]
  const { server, idp, clock } = await startTestServer(t, { mode: 'dual', settings: { apiProxy: { rules } } })
  idp.settings.accessTokenLength = 7350
  const port = await freePort()
  const command = await proxy.command(sampleOf(proxy.name, server.port), port, t)
  await startService(t, command, () => hasStatus(`http://127.0.0.1:${port}/`, 200))
  const connectTo = { [publicOrigin]: `http://127.0.0.1:${port}` }
  const browser = createBrowser(t, { origin: publicOrigin, connectTo, now: clock.now })

  const login = await openCallback(browser, await startLogin(browser))
  check('the response of a callback with four cookies passes', login.statusCode === 302, login.text())
  const profile = await browser.fetch('/api/auth/profile')
  check('a request with four cookies passes', profile.statusCode === 200, profile.text())
  const cookie = sessionHeader(browser)
  check('the session has four cookies', cookie.split('; ').length === 4, `${cookie.length} characters`)
  const head = `Host: ${new URL(publicOrigin).host}\r\nCookie: ${cookie}\r\nSec-Fetch-Site: same-origin\r\n`
  await sendRaw(port, `GET /api/files/a%2Fb%20c%40d HTTP/1.1\r\n${head}\r\n`, { answers: 1 })
  const [line] = upstream.requestLines
  check('an encoded slash reaches the API as it is', line === 'GET /a%2Fb%20c%40d', line)
  const { isHealthy } = proxy
  if (isHealthy) {
    await eventually(() => isHealthy(port))
    check('the health check gets 200', true)
  }
}
