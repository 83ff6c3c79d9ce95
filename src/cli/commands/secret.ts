import { newSecret } from '../../config/secrets.js'
import type { Command } from '../command.js'
import { exitCodes } from '../errors.js'

export const secret: Command = async function secret({ terminal }) {
  terminal.stdout.write(`${newSecret()}\n`)
  return exitCodes.fine
}
