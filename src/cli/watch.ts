import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { exitCodes } from './errors.js'
import { untilStopped } from './signals.js'
import type { Terminal } from './terminal.js'

const program = fileURLToPath(new URL('../../bin/platform-auth-server.js', import.meta.url))

// Node's watch mode loses a signal that arrives while it restarts the program, so the signal is repeated.
const REPEAT_MS = 2000

/**
 * Runs the server in Node's watch mode, which restarts it when one of its modules changes. These are mainly the module
 * of the setting `extend` and the modules that it imports. Stops the server at a signal and returns the exit code.
 */
export async function watch(terminal: Terminal): Promise<number> {
  const args = terminal.args.filter(arg => arg !== '--watch')
  // In its own process group, the server gets no signal from the terminal, and only Node's watch mode tells it to stop.
  const node = spawn(process.execPath, ['--watch', '--watch-preserve-output', program, ...args], {
    cwd: terminal.cwd,
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true
  })
  const ended = once(node, 'exit')
  let isStopping = false
  const stop = async () => {
    isStopping = true
    node.kill('SIGTERM')
    const repeated = setInterval(() => node.kill('SIGTERM'), REPEAT_MS)
    await ended
    clearInterval(repeated)
  }
  // The terminal sends SIGHUP when it is closed.
  const removeListener = terminal.onSignal('SIGHUP', stop)
  try {
    const exitCode = ended.then(() => (isStopping ? exitCodes.fine : exitCodes.failed))
    return await Promise.race([untilStopped(terminal, stop), exitCode])
  } finally {
    removeListener()
  }
}
