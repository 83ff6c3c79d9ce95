/**
 * Measures the startup time, compared with bare Koa and with Node alone. A server can postpone work until it listens. The first
 * response then waits for the postponed work. Therefore the time until listening and the time until the first response are
 * both measured.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from './ports.js'
import { onCore, SERVER_CORE } from './processes.js'
import { median } from './report.js'
import { CALLBACK_URL } from './settings.js'

const STARTS_PER_ROUND = 5
const BIN = fileURLToPath(new URL('../bin/platform-auth-server.js', import.meta.url))
const BARE_KOA = fileURLToPath(new URL('startup-koa.js', import.meta.url))
const SECRET = 'R4nd0m-enough-for-a-start-that-nobody-logs-in-to'
const SETTINGS = { SERVER_SESSION_SECRET: SECRET, PLATFORM_CLIENT_SECRET: SECRET }
const FLAGS = ['--mode', 'dual', '--client-id', 'bench', '--callback-url', CALLBACK_URL]

/**
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 */
export async function measureStartup({ load }, { rounds }) {
  // The folder is empty, so that no other settings file or `.env` has an effect.
  const cwd = await mkdtemp(join(tmpdir(), 'bench-startup-'))
  const command = (nodeArgs, settings) => {
    const [command, args] = onCore(SERVER_CORE, nodeArgs)
    return { command, args, env: { ...settings, NODE_ENV: 'production' }, cwd }
  }
  const start = async nodeArgs => {
    const port = await freePort()
    const process = command(nodeArgs, { ...SETTINGS, PORT: String(port) })
    return load.ask('timeToListen', { ...process, port, path: '/healthz' })
  }
  const end = async nodeArgs => ({ ended: await load.ask('timeToExit', command(nodeArgs, {})) })
  const cases = [
    { name: 'bare Koa', measure: () => start([BARE_KOA]) },
    { name: 'this server', measure: () => start([BIN, ...FLAGS]) },
    { name: 'Node with nothing to do', measure: () => end(['--eval', '']) },
    { name: 'this server, `--help`', measure: () => end([BIN, '--help']) }
  ]

  try {
    const times = cases.map(() => [])
    for (let start = 0; start < rounds * STARTS_PER_ROUND; start++) {
      for (const [index, { measure }] of cases.entries()) times[index].push(await measure())
    }
    return cases.map(({ name }, index) => {
      const medianOf = event => (event in times[index][0] ? median(times[index].map(time => time[event])) : undefined)
      return { name, listening: medianOf('listening'), answered: medianOf('answered'), ended: medianOf('ended') }
    })
  } finally {
    await rm(cwd, { recursive: true })
  }
}
