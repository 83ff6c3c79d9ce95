import type { Logger } from 'pino'
import type { Config } from '../config/settings.js'
import type { RunningServer } from '../start.js'
import { coloursFor } from '../support/colours.js'
import type { Terminal } from './terminal.js'
import { version } from './version.js'

type ServerAddresses = Pick<RunningServer, 'url' | 'callbackUrl' | 'demoUrl'>

/** Prints the address to open and the most important settings for a person at a terminal. */
export function announceOnTerminal(
  { mode, wwwroot }: Config,
  { url, callbackUrl, demoUrl }: ServerAddresses,
  terminal: Pick<Terminal, 'stdout' | 'env'>
): void {
  const { bold, dim, green, cyan } = coloursFor(terminal)
  const facts: readonly (readonly [name: string, text: string])[] = [
    ['Open', cyan(`${url}/`)],
    ['Mode', mode],
    ['Pages', wwwroot ?? 'the starter page (put your own pages into ./wwwroot)'],
    ['Callback', `${callbackUrl}${demoUrl === undefined ? dim(' (register this URL at the provider)') : ''}`],
    ...(demoUrl === undefined ? [] : [['Demo', `sign in as anyone at the built-in provider ${demoUrl}`] as const])
  ]
  const lines = facts.map(([name, text]) => `  ${green('➜')}  ${bold(`${name}:`.padEnd(10))} ${text}\n`)
  terminal.stdout.write(`\n  ${bold(`platform-auth-server ${version()}`)}\n\n${lines.join('')}\n`)
}

/** Logs the start of the server as one event. */
export function announceInLog({ mode }: Config, { url, callbackUrl, demoUrl }: ServerAddresses, log: Logger): void {
  const demo = demoUrl === undefined ? {} : { demo: demoUrl }
  log.info({ event: 'server_started', url, mode, callbackUrl, version: version(), ...demo }, 'listening')
}
