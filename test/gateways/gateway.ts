// What the rehearsals need of a gateway: its program, and the recipe that is shipped for it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readText } from '../helpers/repository.js'

export interface Teardown {
  teardown(fn: () => unknown): void
}

export interface Gateway {
  readonly name: string
  /** Undefined if the gateway can run here, otherwise the reason why it cannot. */
  readonly missing: string | undefined
  /** Builds the program unless that was done before. Resolves with its version. */
  prepare(): Promise<string>
  /**
   * Starts the gateway with its recipe. Resolves with its port when it passes requests on.
   * @param addresses the port of this machine that takes the place of each address in the recipe
   */
  start(t: Teardown, addresses: Readonly<Record<string, number>>): Promise<number>
  /** The expected result of each attempt that ends differently at this gateway. */
  readonly exceptions: Readonly<Record<string, string>>
}

/** A shipped recipe in which each address is a port of this machine. */
export function recipe(file: string, addresses: Readonly<Record<string, number>>): string {
  return Object.entries(addresses).reduce(
    (text, [address, port]) => text.replaceAll(address, `127.0.0.1:${port}`),
    readText(file)
  )
}

/** Replaces a part of a recipe that must be there. */
export function replaced(text: string, part: string, replacement: string): string {
  if (!text.includes(part)) throw new Error(`The recipe has no line ${part}`)
  return text.replaceAll(part, replacement)
}

/** Runs a gateway until the teardown. Resolves when it answers as it answers somebody who is not signed in. */
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
