import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join, posix } from 'node:path'
import { parseEnv } from 'node:util'
import test from 'ava'
import { defaultLoaders } from 'cosmiconfig'
import { loadConfig } from '#src/config/load.js'
import { filesBelow, readText, readYaml, repository } from '../helpers/repository.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { runCommands, secretFiles, settingsFrom, typedSecret } from './settings.js'

interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>
  readonly volumes: Readonly<Record<string, unknown>>
}

interface Service {
  readonly build?: { readonly context: string; readonly dockerfile: string }
  readonly env_file?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly secrets?: readonly string[]
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly depends_on?: readonly string[] | Readonly<Record<string, unknown>>
  readonly stop_grace_period?: string
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly networks?: readonly string[]
  readonly command?: readonly string[]
  readonly ulimits?: { readonly core: number }
}

const [compose] = readYaml('deploy/compose.yaml') as [Compose]
const { services } = compose
const servers = Object.entries(services).filter(([, { build }]) => build !== undefined)

/** The variables of a replica: those of server.env, as docs/deploy/one-machine.md writes it, and those of its service. */
function variablesOf({ environment }: Service): Record<string, string> {
  const [serverEnv = ''] = /```ini\n(.*?)```/s.exec(readText('docs/deploy/one-machine.md'))?.slice(1) ?? []
  // The page has a placeholder.
  return { ...(parseEnv(serverEnv) as Record<string, string>), PLATFORM_CLIENT_ID: 'a-client', ...environment }
}

test('compose.yaml runs two replicas with the same settings, and the server accepts these without a warning', async t => {
  t.is(servers.length, 2)
  const [[, first], [, second]] = servers as [[string, Service], [string, Service]]
  t.deepEqual(first, second)
  t.is(first.env_file, 'server.env')
  const variables = variablesOf(first)
  for (const value of Object.values(variables)) t.is(typeof value, 'string')
  const { config, warnings } = await settingsFrom(t, variables)
  t.deepEqual(warnings, [])
  t.is(config.redis.url?.hosts[0]?.host, 'redis')
  const { delaySeconds, graceSeconds } = config.shutdown
  t.true(Number.parseInt(first.stop_grace_period ?? '', 10) > delaySeconds + graceSeconds)
})

test('each replica gets exactly the secrets whose paths are in its variables, and the introduction lists every secret', t => {
  for (const [, { environment = {}, secrets = [] }] of servers) {
    t.deepEqual(
      secretFiles(environment),
      secrets.map(name => `/run/secrets/${name}`)
    )
    for (const name of secrets) t.is(compose.secrets[name]?.file, `secrets/${name}`)
  }
  const comment = readText('deploy/compose.yaml').match(/^#.*$/gm)?.join(' ') ?? ''
  for (const name of Object.keys(compose.secrets)) t.true(comment.includes(name), name)
})

test('the commands in the introduction create the five files of secrets, with which the server starts', async t => {
  const introduction = readText('deploy/compose.yaml').split('\nname:', 1).join()
  const [, commands = ''] = /^(# {3}\(\n(?:# {5}.*\n)+# {3}\)\n)/m.exec(introduction) ?? []
  // Only root may give files to another user.
  const script = commands.replaceAll(/^# {3}/gm, '').replace('sudo chown', process.getuid?.() === 0 ? 'chown' : 'true')
  const folder = await tempFolder(t)
  runCommands(t, script, folder)
  const secrets = join(folder, 'deploy/secrets')
  const names = Object.values(compose.secrets).map(({ file }) => basename(file))
  t.deepEqual((await readdir(secrets)).sort(), names.sort())
  for (const name of names) t.is((await stat(join(secrets, name))).mode & 0o777, 0o640, name)

  const given = variablesOf(servers[0]?.[1] ?? {})
  const env = Object.entries(given).map(([name, value]) => [name, value.replace('/run/secrets/', `${secrets}/`)])
  const { config, warnings } = await loadConfig({ env: Object.fromEntries(env), cwd: folder })
  t.deepEqual(warnings, [])
  t.is(config.platform.clientSecret, typedSecret)
  t.deepEqual(config.session.previousSecrets, [])
  const { hosts: [redis] = [], password } = config.redis.url ?? {}
  t.deepEqual(redis, { host: 'redis', port: 6379 })
  t.is(await readFile(join(secrets, 'redis.conf'), 'utf8'), `requirepass ${password}\n`)
})

test('the variant with Caddy replaces nginx, mounts the shipped Caddyfile, and keeps the certificates', t => {
  const path = 'deploy/compose.caddy.yaml'
  // `!reset` is a tag of Compose, which removes the service of compose.yaml.
  const text = readText(path)
  t.regex(text, /^ {2}nginx: !reset null$/m)
  const variant = defaultLoaders['.yaml'](path, text.replace('!reset ', '')) as Compose
  const { caddy } = variant.services
  t.deepEqual(caddy?.ports, ['80:80', '443:443', '443:443/udp'])
  t.deepEqual(caddy?.networks, services.nginx?.networks)
  const replicas = Object.keys(caddy?.depends_on ?? {})
  t.deepEqual(
    replicas,
    servers.map(([name]) => name)
  )
  for (const volume of caddy?.volumes ?? []) {
    const [source = ''] = volume.split(':', 1)
    t.true(source in variant.volumes || existsSync(`${repository}deploy/${source}`), volume)
  }
  t.true(caddy?.volumes?.some(volume => volume.endsWith(':/data')))
  t.is(caddy?.env_file, 'server.env')
  t.true('PUBLIC_HOST' in variablesOf({}))
  t.true(readText('deploy/proxy/Caddyfile').includes('\n{$PUBLIC_HOST:app.example.com} {\n'))
})

test('the variant with TLS mounts the shipped file where nginx.conf includes it, and the certificate where that file reads it', t => {
  const path = 'deploy/compose.tls.yaml'
  const variant = defaultLoaders['.yaml'](path, readText(path).replace('!override ', '')) as Compose
  const [shipped = '', certificates = ''] = variant.services.nginx?.volumes ?? []
  const [file = '', target = ''] = shipped.split(':')
  t.true(readText('deploy/proxy/nginx.conf').includes(`include ${posix.dirname(target)}/*.conf;`))
  const tls = readText(posix.join('deploy', file))
  const [, folder = ''] = certificates.split(':')
  for (const name of ['fullchain.pem', 'privkey.pem']) t.true(tls.includes(` ${folder}/${name};`), name)
  t.true(tls.includes('listen 8443 ssl;'))
  t.deepEqual(variant.services.nginx?.ports, ['80:8080', '443:8443'])
})

test('Redis requires a password that is not on its command line, evicts no data and keeps it over a restart, and only the replicas can reach it', async t => {
  const { redis } = services
  const { config } = await settingsFrom(t, variablesOf(servers[0]?.[1] ?? {}))
  t.truthy(config.redis.url?.password)
  const { command = [], volumes = [] } = redis ?? {}
  t.deepEqual(command.slice(0, 2), ['redis-server', '/run/secrets/redis.conf'])
  const option = (name: string) => command[command.indexOf(name) + 1]
  t.is(option('--maxmemory-policy'), 'noeviction')
  t.regex(option('--maxmemory') ?? '', /^\d+mb$/)
  t.is(option('--appendonly'), 'yes')
  t.true(volumes.some(volume => volume.endsWith(':/data')))
  t.deepEqual(redis?.secrets, ['redis.conf'])
  t.is(redis?.ports, undefined)
  t.deepEqual(redis?.networks, ['store'])
  t.true(compose.networks.store?.internal)
  const others = Object.entries(services).filter(([, { networks }]) => networks?.includes('store'))
  const names = others.map(([name]) => name)
  t.deepEqual(names, [...servers.map(([name]) => name), 'redis'])
})

test('every file that compose.yaml refers to exists', t => {
  for (const [name, { depends_on = [], volumes = [], build }] of Object.entries(services)) {
    for (const other of Array.isArray(depends_on) ? depends_on : Object.keys(depends_on))
      t.true(other in services, name)
    for (const volume of volumes) {
      const [source = ''] = volume.replace(/\$\{\w+:-([^}]*)\}/, '$1').split(':', 1)
      t.true(source in compose.volumes || existsSync(`${repository}deploy/${source}`), volume)
    }
    if (build) {
      t.is(posix.join('deploy', build.context), '.')
      t.true(existsSync(repository + build.dockerfile))
    }
  }
})

test('no shipped file configures an eviction policy for Redis', t => {
  const files = ['README.md', ...filesBelow('deploy', 'docs', 'examples', 'config')].filter(
    path => !/\.(svg|ico)$/.test(path)
  )
  for (const path of files) t.notRegex(readText(path), /\b(allkeys|volatile)-(lru|lfu|random|ttl)\b/, path)
})

test('the proxy configurations forward to the replicas of compose.yaml, watch /readyz, and send HSTS for a year', async t => {
  const { config } = await settingsFrom(t, variablesOf(servers[0]?.[1] ?? {}))
  const replicas = servers.map(([name]) => `${name}:${config.port}`)
  for (const [file, replica, hsts, health] of [
    // nginx notices by itself that a replica refuses connections.
    [
      'nginx.conf',
      /^ *server ([\w.-]+:\d+)/gm,
      /^ {4}add_header Strict-Transport-Security "max-age=31536000" always;$/m,
      /./
    ],
    [
      'Caddyfile',
      /(?<=reverse_proxy .*)\b([\w.-]+:\d+)/gm,
      /^\theader Strict-Transport-Security "max-age=31536000"$/m,
      /health_uri \/readyz\b/
    ],
    ['traefik.yaml', /url: http:\/\/([\w.-]+:\d+)/gm, /^ *stsSeconds: 31536000$/m, /path: \/readyz\b/]
  ] as const) {
    const text = readText(`deploy/proxy/${file}`)
    const hosts = [...text.matchAll(replica)].map(([, host]) => host)
    t.deepEqual(hosts, replicas, file)
    t.regex(text, hsts, file)
    t.regex(text, health, file)
  }
  const listening = /listen (\d+);/.exec(readText('deploy/proxy/nginx.conf'))?.[1]
  t.deepEqual(services.nginx?.ports, [`8080:${listening}`])
})

test('every service runs read-only, without capabilities and without core dumps, which would contain secrets', t => {
  for (const [name, service] of Object.entries(services))
    t.like(service, { read_only: true, cap_drop: ['ALL'], ulimits: { core: 0 } }, name)
})
