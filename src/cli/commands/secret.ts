import { exitCodes } from '../exit-codes.js'
import { newSecret } from '../new-secret.js'
import type { Command } from './index.js'

export const secret: Command = async function secret({ terminal }) {
  terminal.stdout.write(`${newSecret()}\n`)
  return exitCodes.fine
}
