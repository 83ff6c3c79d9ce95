// Runs nginx with a shipped configuration in which the host names are replaced by ports of this machine.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { ExecutionContext } from 'ava'
import { eventually } from '../../helpers/eventually.js'
import { freePort, isAnswering } from '../../helpers/ports.js'
import { readText } from '../../helpers/repository.js'
import { tempFolder } from '../../helpers/temp-folder.js'

export const hasNginx = spawnSync('nginx', ['-v']).status === 0

export interface Nginx {
  /** The address for browsers. */
  readonly url: string
  /** The content of the access log. */
  accessLog(): Promise<string>
  /** The content of the error log. */
  errorLog(): string
}

/**
 * @param ports the ports of the replicas
 * @param change alters the shipped configuration, for tests that remove one of its lines
 */
export async function startNginx(
  t: Pick<ExecutionContext, 'teardown'>,
  ports: readonly number[],
  change: (configuration: string) => string = configuration => configuration
): Promise<Nginx> {
  const addresses = ports.map((port, index) => [`server-${index + 1}:8080`, port] as const)
  return runNginx(t, 'deploy/proxy/nginx.conf', Object.fromEntries(addresses), change)
}

/**
 * @param file a shipped configuration
 * @param addresses replaces each address in the configuration with this port of this machine
 */
export async function runNginx(
  t: Pick<ExecutionContext, 'teardown'>,
  file: string,
  addresses: Readonly<Record<string, number>>,
  change: (configuration: string) => string = configuration => configuration
): Promise<Nginx> {
  const port = await freePort()
  const shipped = Object.entries(addresses).reduce(
    (text, [address, port]) => text.replace(address, `127.0.0.1:${port}`),
    readText(file).replace('listen 8080;', `listen 127.0.0.1:${port};`)
  )
  const folder = await tempFolder(t)
  const accessLog = `${folder}/access.log`
  const site = change(shipped).replace('/var/log/nginx/access.log', accessLog)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${folder}/${name};`
  )
  const main = await tempFolder(t, {
    'site.conf': site,
    'nginx.conf': [
      // Only the user who runs the tests can use the folder, so the workers of nginx must run as this user.
      ...(process.getuid?.() === 0 ? ['user root;'] : []),
      'daemon off; worker_processes 1; error_log stderr warn;',
      `pid ${folder}/pid;`,
      'events {}',
      `http { ${temporary.join(' ')} include site.conf; }`
    ].join('\n')
  })
  const child = spawn('nginx', ['-e', 'stderr', '-c', `${main}/nginx.conf`], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const url = `http://127.0.0.1:${port}`
  await eventually(() => {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${said}`)
    return isAnswering(url)
  })
  return { url, accessLog: () => readFile(accessLog, 'utf8'), errorLog: () => said }
}
