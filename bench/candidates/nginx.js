/** nginx as a plain reverse proxy, the reference for downloads. It has no session. */
import { spawnSync } from 'node:child_process'
import { launch } from '../program.js'

export const missing = spawnSync('nginx', ['-v']).error ? 'nginx is not installed' : undefined

const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']

/** @type {import('./common.js').Start} */
export async function start({ providerUrl }) {
  const { place, usage, end } = await launch(({ folder, port }) => ({
    command: 'nginx',
    args: ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr'],
    files: {
      'nginx.conf': `daemon off; master_process off; pid nginx.pid; events {}
http {
  access_log off;
  ${TEMPORARY.map(name => `${name}_temp_path ${name};`).join(' ')}
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass ${providerUrl}; proxy_http_version 1.1; proxy_max_temp_file_size 0; }
  }
}`
    }
  }))
  return { port: place.port, cookie: () => '', usage, end }
}
