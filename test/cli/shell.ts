import { EventEmitter } from 'node:events'
import { PassThrough, Writable } from 'node:stream'
import type { ExecutionContext } from 'ava'
import { main } from '#src/cli/main.js'
import type { Terminal } from '#src/cli/terminal/terminal.js'
import { eventually } from '../helpers/eventually.js'
import { tempFolder } from '../helpers/temp-folder.js'

export interface ShellOptions {
  readonly env?: Record<string, string>
  readonly files?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly isTTY?: boolean
  readonly columns?: number
}

/** Creates a terminal that the test controls. The working directory is a new folder with `files`. */
export async function shell(t: ExecutionContext, args: readonly string[], options: ShellOptions = {}) {
  const { env = {}, files = {}, isTTY = false, columns } = options
  const cwd = options.cwd ?? (await tempFolder(t, { 'wwwroot/index.html': 'hello', ...files }))
  const signals = new EventEmitter()
  const [stdout, stderr, log] = [collector(), collector(), collector()]
  const terminal = {
    args,
    env,
    cwd,
    stdin: Object.assign(new PassThrough(), { isTTY }),
    stdout: Object.assign(stdout.stream, { isTTY, ...(columns && { columns }) }),
    stderr: stderr.stream,
    log: log.stream,
    onSignal: (signal: string, listener: () => void) => subscribe(signals, signal, listener),
    onUncaught: () => () => {},
    onParentEnded: () => () => {},
    onTerminalClosed: () => () => {},
    exit() {},
    hangUp() {}
  } satisfies Terminal
  return {
    terminal,
    signals,
    output: stdout.text,
    errors: stderr.text,
    log: (): Record<string, unknown>[] =>
      log
        .text()
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line))
  }
}

/** Adds a listener. Returns a function that removes the listener. */
export function subscribe(signals: EventEmitter, name: string, listener: () => void): () => void {
  signals.on(name, listener)
  return () => void signals.off(name, listener)
}

/** Runs a command until it ends. */
export async function run(t: ExecutionContext, args: readonly string[], options: ShellOptions = {}) {
  const { terminal, output, errors } = await shell(t, args, options)
  const code = await main(terminal)
  return { code, output: output(), errors: errors(), cwd: terminal.cwd }
}

/** Starts the server as a user would, and waits until it has started or ended. The end of the test stops it with a signal. */
export async function startServer(t: ExecutionContext, args: readonly string[], options: ShellOptions) {
  const console = await shell(t, args, options)
  const ended = main(console.terminal)
  const stop = () => console.signals.emit('SIGTERM')
  t.teardown(async () => {
    stop()
    await ended
  })
  await Promise.race([
    ended,
    eventually(() => console.output() !== '' || console.log().some(line => line.event === 'server_started'))
  ])
  return { ...console, ended, stop }
}

function collector() {
  const chunks: string[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk))
      done()
    }
  })
  return { stream, text: () => chunks.join('') }
}
