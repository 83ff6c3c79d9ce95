// The interface of a gateway for these tests: its program, and its shipped forward-auth configuration (the recipe).
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readText } from '../../helpers/repository.js'

export interface Teardown {
  teardown(fn: () => unknown): void
}

export interface Gateway {
  readonly name: string
  /** The reason why the gateway cannot run here, or undefined if it can. */
  readonly missing: string | undefined
  /** Builds the program unless this was done before. Resolves with its version. */
  prepare(): Promise<string>
  /**
   * Starts the gateway with its recipe. Resolves with its port when it forwards requests.
   * @param addresses replaces each address in the recipe with this port of this machine
   */
  start(t: Teardown, addresses: Readonly<Record<string, number>>): Promise<number>
  /** The results that differ from the expected ones at this gateway, by the name of the attempt. */
  readonly exceptions: Readonly<Record<string, string>>
}

/** Returns a shipped recipe in which each address is replaced by a port of this machine. */
export function recipe(file: string, addresses: Readonly<Record<string, number>>): string {
  return Object.entries(addresses).reduce(
    (text, [address, port]) => text.replaceAll(address, `127.0.0.1:${port}`),
    readText(file)
  )
}

/** Replaces a part of a recipe. Throws if the recipe does not contain it. */
export function replaced(text: string, part: string, replacement: string): string {
  if (!text.includes(part)) throw new Error(`The recipe has no line ${part}`)
  return text.replaceAll(part, replacement)
}

/** Runs a gateway until the teardown. Resolves when it answers a request without a session with 401. */
export async function runGateway(
  t: Teardown,
  port: number,
  { command, args, env }: { command: string; args: readonly string[]; env?: Readonly<Record<string, string>> }
): Promise<void> {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-4000)
    })
  }
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const deadline = Date.now() + 60_000
  while ((await fetch(`http://127.0.0.1:${port}/app`).catch(() => undefined))?.status !== 401) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`${command} did not start:\n${output}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}
