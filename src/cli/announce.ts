import type { Logger } from 'pino'
import type { Config } from '../config/settings.js'
import type { Output } from './terminal.js'
import { version } from './version.js'

export interface Started {
  readonly config: Config
  readonly url: string
  readonly demoUrl: string | undefined
}

/** Says that the server runs: one line for a person at a terminal, one event for a log. */
export function announce({ config, url, demoUrl }: Started, to: Output | Logger): void {
  const { mode, platform } = config
  if ('write' in to) {
    const facts = [
      `platform-auth-server ${version()} (${mode}) at ${url}`,
      `callback URL to register: ${platform.callbackUrl}`
    ]
    if (demoUrl !== undefined) facts[1] = `sign in as anyone, the identity provider is a demo at ${demoUrl}`
    to.write(`${facts.join(' - ')}\n`)
  } else {
    const demo = demoUrl === undefined ? {} : { demo: demoUrl }
    to.info(
      { event: 'server_started', url, mode, callbackUrl: platform.callbackUrl, version: version(), ...demo },
      'listening'
    )
  }
}
