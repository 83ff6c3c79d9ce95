/** Starts server processes as an operator would, each on its own port. */
import { randomBytes } from 'node:crypto'
import { freePort } from './ports.js'
import { startProcess } from './processes.js'
import { CALLBACK_URL, CLIENT_ID, INTERNAL_SCOPES, PUBLIC_SCOPES } from './settings.js'

/**
 * @typedef {object} Unit
 * @property {ReturnType<typeof startProcess>} process
 * @property {string} url
 * @property {string} store the store that `/readyz` reports
 */

/**
 * @param {Record<string, string | undefined>[]} settingsOfEach the environment variables of each process that differ
 * @param {number | undefined} core
 * @param {import('./lineup.js').Around} around
 */
export async function startUnits(settingsOfEach, core, { providerUrl, wwwroot }) {
  const secret = randomBytes(32).toString('base64url')
  const env = {
    PLATFORM_AUTH_MODE: 'dual',
    SERVER_SESSION_SECRET: secret,
    PLATFORM_CLIENT_SECRET: secret,
    INTERNAL_TOKEN_SCOPES: INTERNAL_SCOPES.join(' '),
    PUBLIC_TOKEN_SCOPES: PUBLIC_SCOPES.join(' '),
    PLATFORM_AUTHORIZATION_ENDPOINT: `${providerUrl}/authorize`,
    PLATFORM_TOKEN_ENDPOINT: `${providerUrl}/token`,
    PLATFORM_USERINFO_ENDPOINT: `${providerUrl}/userinfo`,
    PLATFORM_REVOCATION_ENDPOINT: 'none',
    PLATFORM_END_SESSION_ENDPOINT: 'none'
  }
  const flags = ['--host', '127.0.0.1', '--wwwroot', wwwroot, '--client-id', CLIENT_ID]
  const processes = []
  const stop = () => Promise.all(processes.map(process => process.stop()))
  try {
    /** @type {Unit[]} */
    const units = []
    for (const settings of settingsOfEach) {
      const port = await freePort()
      const args = [...flags, '--callback-url', CALLBACK_URL, '--port', String(port)]
      // The folder has no settings file and no `.env` that could have an effect.
      const process = startProcess('serve-bin.js', core, args, { env: { ...env, ...settings }, cwd: wwwroot })
      processes.push(process)
      const url = `http://127.0.0.1:${port}`
      const { store } = await process.ask('ready', url)
      units.push({ process, url, store })
    }
    return { units, secret, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
