// nginx with the configuration that is shipped, but for addresses: ports of this machine in the place of names.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { ExecutionContext } from 'ava'
import { eventually } from '../helpers/eventually.js'
import { freePort, isAnswering } from '../helpers/ports.js'
import { readText } from '../helpers/repository.js'
import { tempFolder } from '../helpers/temp-folder.js'

export const hasNginx = spawnSync('nginx', ['-v']).status === 0

export interface Nginx {
  /** The address for browsers. */
  readonly url: string
  /** What nginx has written into its access log. */
  accessLog(): Promise<string>
  /** What nginx has written into its error log. */
  errorLog(): string
}

/**
 * @param ports the ports of the replicas
 * @param change alters the shipped configuration, for tests of what happens without one of its lines
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
 * @param addresses the port of this machine that takes the place of each address in it
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
      // The folder is for the one who runs the tests alone.
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
