import type { Logger } from 'pino'
import type { LoadedConfig } from '../config/load.js'
import type { RunningServer } from '../server.js'
import { messageOf } from './errors.js'
import type { Terminal } from './terminal.js'

/**
 * On SIGHUP, reads the settings again and replaces the secrets. This rotates a secret without a restart and without
 * logging anyone out. If the new settings are invalid, nothing changes. Returns a function that removes the listener.
 */
export function reloadSecretsOnHangup(
  terminal: Pick<Terminal, 'onSignal'>,
  server: Pick<RunningServer, 'replaceSecrets'>,
  load: () => Promise<LoadedConfig>,
  log: Pick<Logger, 'info' | 'error'>
): () => void {
  return terminal.onSignal('SIGHUP', async () => {
    try {
      const { config } = await load()
      server.replaceSecrets(config)
      log.info({ event: 'secrets_reloaded', previous: config.session.previousSecrets.length }, 'secrets read again')
    } catch (error) {
      log.error({ event: 'reload_failed' }, `The secrets were not changed: ${messageOf(error)}`)
    }
  })
}
