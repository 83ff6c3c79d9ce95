import type { Logger } from 'pino'
import type { Config } from '../config/settings.js'
import type { RunningServer } from '../start.js'
import type { Output } from './terminal.js'
import { version } from './version.js'

type Started = Pick<RunningServer, 'url' | 'callbackUrl' | 'demoUrl'>

/** Says that the server runs: one line for a person at a terminal, one event for a log. */
export function announce({ mode }: Config, { url, callbackUrl, demoUrl }: Started, to: Output | Logger): void {
  if ('write' in to) {
    const facts = [`platform-auth-server ${version()} (${mode}) at ${url}`, `callback URL to register: ${callbackUrl}`]
    if (demoUrl !== undefined) facts[1] = `sign in as anyone, the identity provider is a demo at ${demoUrl}`
    to.write(`${facts.join(' - ')}\n`)
  } else {
    const demo = demoUrl === undefined ? {} : { demo: demoUrl }
    to.info({ event: 'server_started', url, mode, callbackUrl, version: version(), ...demo }, 'listening')
  }
}
