import { spawnSync } from 'node:child_process'
import { freePort } from '../../helpers/ports.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { buildGoProgram } from '../providers/cache.js'
import { type Gateway, recipe, replaced, runGateway } from './gateway.js'

// The newest version that can be built from the Go module proxy, which lacks some modules that 3.7 needs.
const version = '3.6.12'

const program = {
  name: `traefik-${version}`,
  module: 'github.com/traefik/traefik/v3',
  version: `v${version}`,
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
  missing: spawnSync('go', ['version']).status === 0 ? undefined : 'go is not installed',
  async prepare() {
    await buildGoProgram(program)
    return version
  },
  async start(t, addresses) {
    const port = await freePort()
    const shipped = recipe('deploy/proxy/traefik-forward-auth-routes.yaml', addresses)
    const routes = replaced(shipped, 'Host(`app.example.com`)', 'PathPrefix(`/`)')
    const folder = await tempFolder(t, { 'routes.yaml': routes })
    const main = await tempFolder(t, { 'traefik.yaml': await plainHttp(port, `${folder}/routes.yaml`) })
    const args = [`--configFile=${main}/traefik.yaml`]
    await runGateway(t, port, { command: await buildGoProgram(program), args })
    return port
  },
  exceptions: {
    // Traefik 3.7.12 removes the first four headers if `aliasHeadersStrategy` is set.
    'Author.ization': 'the internal token alone, Author.ization',
    Author_ization: 'the internal token alone, Author_ization',
    _Authorization: 'the internal token alone, _authorization',
    Authorization_: 'the internal token alone, Authorization_',
    // Go joins a folded line to the value of the header before it.
    'Authorization on a folded line': 'the internal token alone, X-A'
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
  const shipped = recipe('deploy/proxy/traefik-forward-auth.yaml', {}).replace(/certificatesResolvers:\n( .*\n)+/, '')
  const changed = changes.reduce((text, [part, replacement]) => replaced(text, part, replacement), shipped)
  return `${changed}\nglobal:\n  checkNewVersion: false\n  sendAnonymousUsage: false\n`
}
