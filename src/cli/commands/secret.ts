import type { Command } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { newSecret } from '../new-secret.js'

export const secret: Command = async function secret({ terminal }) {
  terminal.stdout.write(`${newSecret()}\n`)
  return exitCodes.fine
}
