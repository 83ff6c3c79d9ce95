// Compiles src/ on every change, reports type errors, and restarts the demo with the result. Flags are passed on:
// npm run dev -- --port 9000
import { spawn, spawnSync } from 'node:child_process'

const compiler = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json']
const bundler = ['scripts/bundle.js']
const server = ['bin/platform-auth-server.js', '--demo', '--mode', 'dual', ...process.argv.slice(2)]

// The server needs a complete dist/bundle/ when it starts. If src/ has syntax errors now, the server starts after they are
// corrected.
spawnSync(process.execPath, bundler, { stdio: 'inherit' })

// Each child gets its own process group, because the compiler and the bundler start other processes.
const start = args => spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'], detached: true })
const children = [
  start([...compiler, '--watch', '--preserveWatchOutput']),
  start([...bundler, '--watch']),
  // Node watches only the loaded modules. After a change in wwwroot/, no restart is needed.
  start(['--watch', '--watch-preserve-output', ...server])
]

// Node's watch mode loses a signal that arrives during a restart of the program, so the signal is repeated.
function stop() {
  for (const { pid } of children) {
    try {
      process.kill(-pid, 'SIGTERM')
    } catch {
      // This process group has already ended.
    }
  }
  setTimeout(stop, 2000).unref()
}
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, stop)
for (const child of children) child.on('exit', stop)
