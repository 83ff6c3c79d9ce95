import type { Logger } from 'pino'
import type { Config } from '../config/settings.js'
import type { RunningServer } from '../start.js'
import { coloursFor } from '../support/colours.js'
import { version } from '../support/version.js'
import type { Terminal } from './terminal.js'
import { columnsOf } from './terminal.js'

type ServerAddresses = Pick<RunningServer, 'url' | 'callbackUrl' | 'demoUrl'>

/**
 * Prints the address to open and the most important settings for a person at a terminal. A note that does not fit into the
 * width of the terminal gets its own line.
 */
export function announceOnTerminal(
  { mode, wwwroot }: Config,
  { url, callbackUrl, demoUrl }: ServerAddresses,
  terminal: Pick<Terminal, 'stdout' | 'env'>
): void {
  const { bold, dim, green, cyan } = coloursFor(terminal)
  const columns = columnsOf(terminal.stdout) ?? Number.POSITIVE_INFINITY
  const facts: readonly (readonly [name: string, value: string, note?: string])[] = [
    ['Open', `${url}/`],
    ['Mode', mode],
    wwwroot === undefined ? ['Pages', 'the starter page', '(put your own pages into ./wwwroot)'] : ['Pages', wwwroot],
    demoUrl === undefined
      ? ['Callback', callbackUrl, '(register this URL at the provider)']
      : ['Callback', callbackUrl],
    ...(demoUrl === undefined ? [] : [['Demo', demoUrl, '(sign in as anyone, without a password)'] as const])
  ]
  const lines = facts.map(([name, value, note]) => {
    const label = `  ➜  ${`${name}:`.padEnd(10)} `
    const shown = name === 'Open' ? cyan(value) : value
    const fits = note !== undefined && label.length + value.length + 1 + note.length <= columns
    const end = note === undefined ? '' : `${fits ? ' ' : `\n${' '.repeat(label.length)}`}${dim(note)}`
    return `  ${green('➜')}  ${bold(`${name}:`.padEnd(10))} ${shown}${end}\n`
  })
  terminal.stdout.write(`\n  ${bold(`platform-auth-server ${version()}`)}\n\n${lines.join('')}\n`)
}

/** Logs the start of the server as one event. */
export function announceInLog({ mode }: Config, { url, callbackUrl, demoUrl }: ServerAddresses, log: Logger): void {
  const demo = demoUrl === undefined ? {} : { demo: demoUrl }
  log.info({ event: 'server_started', url, mode, callbackUrl, version: version(), ...demo }, 'listening')
}
