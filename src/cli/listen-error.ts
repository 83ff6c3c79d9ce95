import { errorCode } from '../config/read-file.js'
import { messageOf, RunError } from './errors.js'

/** Why nothing could listen, for the flag that chooses the port. */
export function listenError(error: unknown, portFlag: string): RunError {
  const { address, port } = error as { address?: string; port?: number }
  const explain = explanations[errorCode(error) ?? '']
  const message = explain?.({ address, port, portFlag }) ?? `The server could not start: ${messageOf(error)}`
  return new RunError(message, { cause: error })
}

interface Place {
  readonly address: string | undefined
  readonly port: number | undefined
  readonly portFlag: string
}

const explanations: Readonly<Record<string, (place: Place) => string>> = {
  EADDRINUSE: ({ port, portFlag }) =>
    `Port ${port} is taken by another program; stop that one, or choose another port with ${portFlag}.`,
  EACCES: ({ port, portFlag }) => `This user may not listen on port ${port}; choose one above 1023 with ${portFlag}.`,
  EADDRNOTAVAIL: ({ address }) =>
    `${address} is no address of this machine; choose another with --host, or leave it out.`,
  ENOTFOUND: () => 'The host to listen on is not known; choose another with --host, or leave it out.'
}
