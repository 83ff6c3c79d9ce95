import type { Command } from '../command.js'
import { bashCompletion } from '../completion/bash.js'
import { wordsOf } from '../completion/words.js'
import { zshCompletion } from '../completion/zsh.js'
import { UsageError } from '../errors.js'
import { exitCodes } from '../exit-codes.js'

const scripts = { bash: bashCompletion, zsh: zshCompletion }

export const completion: Command = async function completion({ terminal, commands, args: [shell = ''] }) {
  if (!isShell(shell)) throw new UsageError(`There is no completion for ${shell}, only for bash and zsh.`)
  terminal.stdout.write(scripts[shell](wordsOf(commands)))
  return exitCodes.fine
}

function isShell(name: string): name is keyof typeof scripts {
  return Object.hasOwn(scripts, name)
}
