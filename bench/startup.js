/**
 * Measures the start of the command line, compared with bare Koa. A server can postpone work until it
 * listens. The first response then waits for it, so both times are measured.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from './ports.js'
import { onCore, SERVER_CORE } from './processes.js'
import { median, table } from './report.js'
import { CALLBACK_URL } from './settings.js'

const STARTS_PER_ROUND = 5
const BIN = fileURLToPath(new URL('../bin/platform-auth-server.js', import.meta.url))
const BARE_KOA = fileURLToPath(new URL('startup-koa.js', import.meta.url))
const SECRET = 'R4nd0m-enough-for-a-start-that-nobody-logs-in-to'
const SETTINGS = { SERVER_SESSION_SECRET: SECRET, PLATFORM_CLIENT_SECRET: SECRET }
const FLAGS = ['--mode', 'dual', '--client-id', 'bench', '--callback-url', CALLBACK_URL]
const EVENTS = ['listening', 'answered']

const cases = [
  { name: 'bare Koa', nodeArgs: [BARE_KOA] },
  { name: 'platform-auth-server', nodeArgs: [BIN, ...FLAGS] }
]

/** @type {import('./ratios.js').Measurement} */
export async function measureStartup({ load }, { rounds }) {
  // The folder is empty, so that no other settings file or `.env` has an effect.
  const cwd = await mkdtemp(join(tmpdir(), 'bench-startup-'))
  try {
    const times = cases.map(() => [])
    for (let start = 0; start < rounds * STARTS_PER_ROUND; start++) {
      for (const [index, { nodeArgs }] of cases.entries()) {
        const port = await freePort()
        const [command, args] = onCore(SERVER_CORE, nodeArgs)
        const env = { ...SETTINGS, PORT: String(port), NODE_ENV: 'production' }
        times[index].push(await load.ask('timeToListen', { command, args, env, cwd, port, path: '/healthz' }))
      }
    }
    const medians = times.map(list => EVENTS.map(event => median(list.map(time => time[event]))))
    const cells = cases.map(({ name }, index) => [
      name,
      ...medians[index].flatMap((value, event) => [Math.round(value), (value / medians[0][event]).toFixed(2)])
    ])
    const head = ['', 'until listening', 'ratio', 'until first response', 'ratio']
    const text = `\n## startup: milliseconds since the start of the process\n\n${table(head, cells)}`
    return { text, ratios: { startup: medians[1][0] / medians[0][0] } }
  } finally {
    await rm(cwd, { recursive: true })
  }
}
