// Starts the back end of back-end.py.
import { freePort, isAnswering } from '../../helpers/ports.js'
import { repository } from '../../helpers/repository.js'
import type { Teardown } from '../../helpers/scope.js'
import { isInstalled, startService } from '../programs.js'

export const hasPython = isInstalled('python3')

/** A request as the back end received it, which is the body of its response. */
export interface Received {
  readonly method: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly trailers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

/** The values of `Authorization` that the back end received. */
export function authorizationsIn({ headers }: Received): string[] {
  return headers.filter(([name]) => name.toLowerCase() === 'authorization').map(([, value]) => value)
}

/** The paths of all requests that reached the back end. */
export async function pathsAsked(port: number): Promise<string[]> {
  return (await (await fetch(`http://127.0.0.1:${port}/asked-so-far`)).json()) as string[]
}

/** Resolves with the port when the back end responds. */
export async function startBackEnd(t: Teardown): Promise<number> {
  const port = await freePort()
  const command = { command: 'python3', args: [`${repository}test/real/gateways/back-end.py`, String(port)] }
  await startService(t, command, () => isAnswering(`http://127.0.0.1:${port}/asked-so-far`))
  return port
}
