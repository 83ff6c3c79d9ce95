// nginx with the configuration that is shipped, but for addresses: ports of this machine in the place of names.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { ExecutionContext } from 'ava'
import { freePort } from '../helpers/redis-server.js'
import { readText } from '../helpers/repository.js'
import { tempFolder } from '../helpers/temp-folder.js'

export const hasNginx = spawnSync('nginx', ['-v']).status === 0

/**
 * @param ports where the replicas listen
 * @param change for what happens without a line of it
 * @returns where browsers find it
 */
export async function startNginx(
  t: Pick<ExecutionContext, 'teardown'>,
  ports: readonly number[],
  change: (configuration: string) => string = configuration => configuration
): Promise<string> {
  const port = await freePort()
  const shipped = ports.reduce(
    (text, replica, index) => text.replace(`server-${index + 1}:8080`, `127.0.0.1:${replica}`),
    readText('deploy/proxy/nginx.conf').replace('listen 8080;', `listen 127.0.0.1:${port};`)
  )
  const folder = await tempFolder(t, { 'site.conf': change(shipped) })
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${folder}/${name};`
  )
  const main = await tempFolder(t, {
    'nginx.conf': [
      // The folder is for the one who runs the tests alone.
      ...(process.getuid?.() === 0 ? ['user root;'] : []),
      'daemon off; worker_processes 1; error_log stderr warn;',
      `pid ${folder}/pid;`,
      'events {}',
      `http { access_log off; ${temporary.join(' ')} include ${folder}/site.conf; }`
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
  while (!(await fetch(url).catch(() => undefined))) {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${said}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  return url
}
