/** This server, started by a program. */
import { freePort } from '../ports.js'
import { createSessions, signIn } from '../sessions.js'
import { CALLBACK_URL, CLIENT_ID, INTERNAL_SCOPES, PROXIED_PATH, PUBLIC_SCOPES } from '../settings.js'

// Users run the bundle. A profile needs the modules, because it names their folders.
const { loadConfig, startServer } = await import(
  process.env.BENCH_MODULES ? '../../dist/index.js' : '../../dist/bundle/index.js'
)

/**
 * With the setting `forwardAuth`, the port is that of forward-auth.
 * @type {import('./common.js').Start}
 */
export async function start({ secret, providerUrl, wwwroot, settings = {} }) {
  const { config } = await loadConfig({
    // The folder has no settings file that could have an effect.
    env: false,
    cwd: wwwroot,
    settings: {
      mode: 'dual',
      host: '127.0.0.1',
      port: await freePort(),
      wwwroot,
      platform: {
        clientId: CLIENT_ID,
        clientSecret: secret,
        callbackUrl: CALLBACK_URL,
        internalTokenScopes: INTERNAL_SCOPES,
        publicTokenScopes: PUBLIC_SCOPES,
        authorizationEndpoint: `${providerUrl}/authorize`,
        tokenEndpoint: `${providerUrl}/token`,
        userinfoEndpoint: `${providerUrl}/userinfo`,
        revocationEndpoint: 'none',
        endSessionEndpoint: 'none'
      },
      apiProxy: { rules: [`GET ${PROXIED_PATH}/* ${providerUrl}${PROXIED_PATH}/*`] },
      ...settings,
      session: { secret, ...settings.session },
      ...(settings.forwardAuth && { forwardAuth: { address: `127.0.0.1:${await freePort()}` } })
    }
  })
  const { port, forwardAuthPort } = await startServer(config)
  // A Redis must know the sessions, so they come from a login.
  const cookie = settings.redis ? () => signIn(`http://127.0.0.1:${port}`, secret) : createSessions(secret).cookie
  return { port: forwardAuthPort ?? port, cookie }
}
