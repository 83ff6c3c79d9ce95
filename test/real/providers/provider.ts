// The interface between the scenarios and a real identity provider, and functions that start and stop one.
import { type ChildProcess, spawn } from 'node:child_process'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import type { Browser } from '../../helpers/browser.js'

/**
 * The client that is registered at each provider. Its secret contains every character that must be encoded in Basic
 * credentials.
 */
export const client = {
  id: 'platform-auth-server',
  secret: 'a+secret/with=100%25&some:more~of it',
  callbackUrl: 'http://localhost:8080/api/auth/callback',
  homeUrl: 'http://localhost:8080/'
} as const

export const person = { userName: 'ada', email: 'ada@mail.example', password: 'a-password-of-Ada-1' } as const

export interface ProviderKind {
  readonly name: string
  readonly version: string
  /** The expected results that differ from the usual ones, by `scenario`, `mode` or `scenario, mode`. */
  readonly exceptions: Readonly<Record<string, string>>
  /** The program that is needed to build or run this provider. */
  readonly needs: string
  /** Builds or downloads the provider unless this was done before. */
  prepare(): Promise<void>
  start(): Promise<RunningProvider>
}

export interface RunningProvider {
  /** The settings on the provider's page in docs/providers, without those of the client. */
  readonly settings: Readonly<Record<'single' | 'dual', Readonly<Record<string, string>>>>
  /** Signs in, from an authorization URL to the callback URL, which is returned and not opened. */
  signIn(browser: Browser, authorizationUrl: string): Promise<string>
  /** Signs out, starting at the end-session endpoint. Resolves with the address or the text of the last page. */
  signOut(browser: Browser, endSessionUrl: string): Promise<string>
  /** Registers the address for logout tokens. Missing if the provider has no back-channel logout. */
  registerBackChannelLogout?(url: string): Promise<void>
  /** Puts the person into the group `admins`, or removes it. Missing if the provider has no claim `groups`. */
  setAdmin?(isAdmin: boolean): Promise<void>
  /** Ends all logins at the provider. */
  endLogins(): Promise<void>
  /** Makes the provider sign later ID tokens with another key. */
  rotateKeys(): Promise<void>
  stop(): Promise<void>
}

export interface Command {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** Starts a server and waits until `url` answers 200. If the server ends before that, the error contains its output. */
export async function startProcess(
  { command, args, env, cwd }: Command,
  url: string
): Promise<{ stop(): Promise<void> }> {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe']
  })
  let output = ''
  const collect = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-4000)
  }
  child.stdout?.on('data', collect)
  child.stderr?.on('data', collect)
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
  const stop = async () => {
    signalGroup(child, 'SIGTERM')
    const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), 10_000)
    await ended
    clearTimeout(timer)
  }
  // The limit is long, because a machine that builds something at the same time is slow.
  const deadline = Date.now() + 600_000
  while (!(await answers(url))) {
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop()
      throw new Error(`${command} did not start:\n${output}`)
    }
    await pause(500)
  }
  return { stop }
}

/** Runs a command. Rejects with the last part of its output if it fails. */
export async function run({ command, args, env, cwd }: Command): Promise<void> {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-4000)
    })
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output}`)
}

export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}

export function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

/** Sends a request to the administration interface of a provider. Throws unless it succeeds. */
export async function administer(
  method: string,
  url: string,
  { token, json, form }: { token?: string; json?: unknown; form?: Record<string, string> } = {}
): Promise<unknown> {
  const response = await fetch(url, {
    method,
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(json !== undefined && { 'content-type': 'application/json' })
    },
    ...(json !== undefined && { body: JSON.stringify(json) }),
    ...(form && { body: new URLSearchParams(form) })
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${text.slice(0, 500)}`)
  return text === '' ? undefined : JSON.parse(text)
}

/** The ids of the keys that a provider publishes. */
export async function keyIds(jwksUri: string): Promise<string> {
  const { keys } = (await administer('GET', jwksUri)) as { keys: readonly { kid: string }[] }
  return keys.map(({ kid }) => kid).join(' ')
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch {
    // The process has already ended.
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(5000) })
    await response.body?.cancel()
    return response.status === 200
  } catch {
    return false
  }
}
