import { spawnSync } from 'node:child_process'
import { hasNginx, runNginx } from '../rehearsal/nginx.js'
import type { Gateway } from './gateway.js'

export const nginx: Gateway = {
  name: 'nginx',
  missing: hasNginx ? undefined : 'nginx is not installed',
  async prepare() {
    return /nginx\/([\d.]+)/.exec(spawnSync('nginx', ['-v']).stderr.toString())?.[1] ?? 'unknown'
  },
  async start(t, addresses) {
    const { url } = await runNginx(t, 'deploy/proxy/nginx-forward-auth.conf', addresses)
    return Number(new URL(url).port)
  },
  exceptions: {
    'Authorization twice': '400',
    'Authorization on a folded line': '400'
  }
}
