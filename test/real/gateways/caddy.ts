import { spawnSync } from 'node:child_process'
import { freePort } from '../../helpers/ports.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { buildGoProgram } from '../providers/cache.js'
import { type Gateway, recipe, replaced, runGateway } from './gateway.js'

const version = '2.11.9'

const program = {
  name: `caddy-${version}`,
  module: 'github.com/caddyserver/caddy/v2',
  version: `v${version}`,
  package: 'github.com/caddyserver/caddy/v2/cmd/caddy'
}

export const caddy: Gateway = {
  name: 'Caddy',
  missing: spawnSync('go', ['version']).status === 0 ? undefined : 'go is not installed',
  async prepare() {
    await buildGoProgram(program)
    return version
  },
  async start(t, addresses) {
    const port = await freePort()
    const options = '{\n\tadmin off\n\tpersist_config off\n\tauto_https off\n}\n'
    const shipped = recipe('deploy/proxy/Caddyfile-forward-auth', addresses)
    const site = replaced(shipped, '\napp.example.com {', `\nhttp://:${port} {\n\tbind 127.0.0.1`)
    const folder = await tempFolder(t, { Caddyfile: options + site })
    const args = ['run', '--config', `${folder}/Caddyfile`, '--adapter', 'caddyfile']
    const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
    await runGateway(t, port, { command: await buildGoProgram(program), args, env })
    return port
  },
  exceptions: {
    // Go joins a folded line to the value of the header before it.
    'Authorization on a folded line': 'the internal token alone, X-A',
    // A back end must not merge trailers into its headers (RFC 9110 section 6.5.1).
    'Authorization as an announced trailer': 'the internal token alone, trailer Authorization'
  }
}
