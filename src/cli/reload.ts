import type { Logger } from 'pino'
import type { LoadedConfig } from '../config/load.js'
import type { RunningServer } from '../server.js'
import { messageOf } from './errors.js'
import type { Terminal } from './terminal.js'

/**
 * SIGHUP reads the settings again and takes over the secrets, so that one is rotated without a restart and without
 * logging anyone out. Settings that are wrong now change nothing. Returns what ends the listening.
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
      log.error({ event: 'reload_failed' }, `The secrets stay as they were: ${messageOf(error)}`)
    }
  })
}
