// The gateways: their programs, and the shipped configurations with which they run here.
import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import type { selfSignedCertificate } from '../../helpers/certificate.js'
import { freePort, isAnswering } from '../../helpers/ports.js'
import { readText } from '../../helpers/repository.js'
import type { Teardown } from '../../helpers/scope.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { buildGoProgram, type Command, hasStatus, isInstalled, startService } from '../programs.js'

export interface Gateway {
  readonly name: string
  /** The reason why the gateway cannot run here, or undefined if it can. */
  readonly missing: string | undefined
  readonly version: string
  /**
   * Builds the program unless this was done before, and starts the gateway with its forward-auth configuration. Resolves
   * with its port when it forwards requests.
   * @param addresses replaces each address in the configuration with this port of this machine
   */
  start(t: Teardown, addresses: Addresses): Promise<number>
  /** The results that differ from the expected ones at this gateway, by the name of the attempt. */
  readonly exceptions: Readonly<Record<string, string>>
}

type Addresses = Readonly<Record<string, number>>

const missingGo = isInstalled('go') ? undefined : 'go is not installed'
const nginxVersion = spawnSync('nginx', ['-v'], { encoding: 'utf8' })
export const hasNginx = nginxVersion.status === 0

export const nginx: Gateway = {
  name: 'nginx',
  missing: hasNginx ? undefined : 'nginx is not installed',
  version: /nginx\/([\d.]+)/.exec(nginxVersion.stderr)?.[1] ?? 'unknown',
  async start(t, addresses) {
    const { url } = await startNginx(t, 'deploy/proxy/nginx-forward-auth.conf', addresses)
    return Number(new URL(url).port)
  },
  exceptions: {
    'Authorization twice': '400',
    'Authorization on a folded line': '400'
  }
}

/**
 * Starts nginx with a shipped configuration, and waits until it forwards a health check. A certificate is used as compose.tls.yaml does.
 * @param change alters the shipped configuration, for tests that remove one of its lines
 */
export async function startNginx(
  t: Teardown,
  file: string,
  addresses: Addresses,
  change: (configuration: string) => string = configuration => configuration,
  certificate?: ReturnType<typeof selfSignedCertificate>
) {
  const [port, tlsPort] = [await freePort(), await freePort()]
  const tls = replaced(readText('deploy/proxy/nginx-tls.conf'), 'listen 8443 ', `listen 127.0.0.1:${tlsPort} `)
  const folder = await tempFolder(
    t,
    certificate && {
      'fullchain.pem': certificate.cert,
      'privkey.pem': certificate.key,
      'tls/nginx-tls.conf': tls.replaceAll('/etc/nginx/certificates/', '')
    }
  )
  const accessLog = `${folder}/access.log`
  const shipped = replaced(shippedFile(file, addresses), 'listen 8080;', `listen 127.0.0.1:${port};`)
  const site = change(shipped).replace('/var/log/nginx/access.log', accessLog).replace('/etc/nginx/tls/', 'tls/')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${folder}/${name};`
  )
  await writeFile(`${folder}/site.conf`, site)
  await writeFile(
    `${folder}/nginx.conf`,
    [
      // Only the user who runs the tests can use the folder, so the workers of nginx must run as this user.
      ...(process.getuid?.() === 0 ? ['user root;'] : []),
      'daemon off; worker_processes 1; error_log stderr warn;',
      `pid ${folder}/pid;`,
      'events {}',
      `http { ${temporary.join(' ')} include site.conf; }`
    ].join('\n')
  )
  const url = `http://127.0.0.1:${port}`
  const command = { command: 'nginx', args: ['-e', 'stderr', '-c', `${folder}/nginx.conf`] }
  const { output } = await startService(t, command, () => isAnswering(`${url}/readyz`))
  return { url, tlsPort, accessLog: () => readFile(accessLog, 'utf8'), errorLog: output }
}

const caddyProgram = {
  name: 'caddy-2.11.9',
  module: 'github.com/caddyserver/caddy/v2',
  version: 'v2.11.9',
  package: 'github.com/caddyserver/caddy/v2/cmd/caddy'
}

export const caddy: Gateway = {
  name: 'Caddy',
  missing: missingGo,
  version: caddyProgram.version.slice(1),
  async start(t, addresses) {
    const port = await freePort()
    const options = '{\n\tadmin off\n\tpersist_config off\n\tauto_https off\n}\n'
    const shipped = shippedFile('deploy/proxy/Caddyfile-forward-auth', addresses)
    const site = replaced(shipped, '\napp.example.com {', `\nhttp://:${port} {\n\tbind 127.0.0.1`)
    const folder = await tempFolder(t, { Caddyfile: options + site })
    const args = ['run', '--config', `${folder}/Caddyfile`, '--adapter', 'caddyfile']
    const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
    return runGateway(t, port, { command: await buildGoProgram(caddyProgram), args, env })
  },
  exceptions: {
    // Go joins a folded line to the value of the header before it.
    'Authorization on a folded line': 'the internal token alone, X-A',
    // A back end must not merge trailers into its headers (RFC 9110 section 6.5.1).
    'Authorization as an announced trailer': 'the internal token alone, trailer Authorization'
  }
}

const traefikProgram = {
  // The newest version that can be built from the Go module proxy, which lacks some modules that 3.7 needs.
  name: 'traefik-3.6.12',
  module: 'github.com/traefik/traefik/v3',
  version: 'v3.6.12',
  package: 'github.com/traefik/traefik/v3/cmd/traefik',
  replace: [
    'replace github.com/abbot/go-http-auth => github.com/containous/go-http-auth v0.4.1-0.20200324110947-a37a7636d23e',
    'replace github.com/gorilla/mux => github.com/containous/mux v0.0.0-20250523120546-41b6ec3aed59',
    'replace github.com/mailgun/minheap => github.com/containous/minheap v0.0.0-20190809180810-6e71eb837595',
    'exclude github.com/tencentcloud/tencentcloud-sdk-go v3.0.83+incompatible'
  ]
}

export const traefik: Gateway = {
  name: 'Traefik',
  missing: missingGo,
  version: traefikProgram.version.slice(1),
  async start(t, addresses) {
    const port = await freePort()
    const shipped = shippedFile('deploy/proxy/traefik-forward-auth-routes.yaml', addresses)
    const routes = replaced(shipped, 'Host(`app.example.com`)', 'PathPrefix(`/`)')
    const folder = await tempFolder(t, { 'routes.yaml': routes })
    const main = await tempFolder(t, { 'traefik.yaml': await plainHttp(port, `${folder}/routes.yaml`) })
    const args = [`--configFile=${main}/traefik.yaml`]
    return runGateway(t, port, { command: await buildGoProgram(traefikProgram), args })
  },
  exceptions: {
    // Traefik 3.7.12 removes the first four headers if `aliasHeadersStrategy` is set.
    'Author.ization': 'the internal token alone, Author.ization',
    Author_ization: 'the internal token alone, Author_ization',
    _Authorization: 'the internal token alone, _authorization',
    Authorization_: 'the internal token alone, Authorization_',
    // Go joins a folded line to the value of the header before it.
    'Authorization on a folded line': 'the internal token alone, X-A',
    // Traefik merges slashes in every request (`sanitizePath`).
    'a user who is not signed in opens /x//y, and signs in': '200, /x/y',
    // Traefik cannot respond with a page of its own.
    'a user who is not signed in sends a form with 3 headers of Fetch Metadata':
      '401, without a page, the back end is not asked',
    'a user who is not signed in sends a form with 0 headers of Fetch Metadata':
      '401, without a page, the back end is not asked'
  }
}

/** The shipped static configuration without certificates and without the setting that Traefik 3.6 does not have. */
async function plainHttp(port: number, routes: string): Promise<string> {
  const changes = [
    [':80', `127.0.0.1:${await freePort()}`],
    [':443', `127.0.0.1:${port}`],
    ['      tls:\n        certResolver: letsencrypt\n', ''],
    ['      aliasHeadersStrategy: delete\n', ''],
    ['/etc/traefik/traefik-forward-auth-routes.yaml', routes]
  ] as const
  const shipped = readText('deploy/proxy/traefik-forward-auth.yaml').replace(/certificatesResolvers:\n( .*\n)+/, '')
  const changed = changes.reduce((text, [part, replacement]) => replaced(text, part, replacement), shipped)
  return `${changed}\nglobal:\n  checkNewVersion: false\n  sendAnonymousUsage: false\n`
}

/** Resolves with the port when the gateway responds to a request without a session with 401. */
async function runGateway(t: Teardown, port: number, command: Command): Promise<number> {
  await startService(t, command, () => hasStatus(`http://127.0.0.1:${port}/app`, 401))
  return port
}

/** Returns a shipped configuration in which each address is replaced by a port of this machine. */
function shippedFile(file: string, addresses: Addresses): string {
  return Object.entries(addresses).reduce(
    (text, [address, port]) => text.replaceAll(address, `127.0.0.1:${port}`),
    readText(file)
  )
}

/** Replaces a part of a configuration. Throws if the configuration does not contain it. */
function replaced(text: string, part: string, replacement: string): string {
  if (!text.includes(part)) throw new Error(`The configuration has no line ${part}`)
  return text.replaceAll(part, replacement)
}
