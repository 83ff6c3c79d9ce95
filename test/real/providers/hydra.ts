import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { freePort, listen } from '../../helpers/ports.js'
import { buildGoProgram, hasStatus, startService } from '../programs.js'
import { administer, client, type ProviderKind } from './provider.js'

const program = {
  name: 'hydra-2.3.0',
  module: 'github.com/ory/hydra/v2',
  version: 'v2.3.0',
  package: 'github.com/ory/hydra/v2',
  replace: ['replace github.com/gobuffalo/pop/v6 => github.com/ory/pop/v6 v6.2.1-0.20241121111754-e5dfc0f3344b'],
  tags: 'sqlite',
  cgo: true
} as const

const SCOPES = 'openid offline_access data:read viewables:read'

export const hydra: ProviderKind = {
  name: 'Hydra',
  version: '2.3.0',
  needs: 'go',
  exceptions: { 'access by group': 'not supported', dual: '502 at the callback' },
  async start(t) {
    const executable = await buildGoProgram(program)
    const [port, adminPort] = [await freePort(), await freePort()]
    const issuer = `http://127.0.0.1:${port}`
    const admin = `http://127.0.0.1:${adminPort}/admin`
    const pages = createServer((request, response) => {
      acceptAll(admin, request, response).catch(error => response.writeHead(500).end(String(error)))
    })
    const pagesPort = await listen(t, pages)
    await startService(
      t,
      {
        command: executable,
        args: ['serve', 'all', '--dev', '--sqa-opt-out'],
        env: {
          DSN: 'memory',
          SERVE_PUBLIC_HOST: '127.0.0.1',
          SERVE_PUBLIC_PORT: String(port),
          SERVE_ADMIN_HOST: '127.0.0.1',
          SERVE_ADMIN_PORT: String(adminPort),
          URLS_SELF_ISSUER: issuer,
          URLS_LOGIN: `http://127.0.0.1:${pagesPort}/login`,
          URLS_CONSENT: `http://127.0.0.1:${pagesPort}/consent`,
          URLS_LOGOUT: `http://127.0.0.1:${pagesPort}/logout`,
          SECRETS_SYSTEM: 'a-system-secret-for-these-tests-alone',
          LOG_LEVEL: 'error'
        }
      },
      () => hasStatus(`${issuer}/.well-known/openid-configuration`, 200)
    )
    const registered = {
      client_id: client.id,
      client_secret: client.secret,
      redirect_uris: [client.callbackUrl],
      post_logout_redirect_uris: [client.homeUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      scope: SCOPES,
      token_endpoint_auth_method: 'client_secret_basic'
    }
    await administer('POST', `${admin}/clients`, { json: registered })
    return {
      settings: {
        single: { PLATFORM_ISSUER: issuer, PLATFORM_SCOPES: 'openid offline_access data:read' },
        dual: {
          PLATFORM_ISSUER: issuer,
          INTERNAL_TOKEN_SCOPES: SCOPES,
          PUBLIC_TOKEN_SCOPES: 'viewables:read'
        }
      },
      async registerBackchannelLogout(url) {
        const json = { ...registered, backchannel_logout_uri: url, backchannel_logout_session_required: true }
        await administer('PUT', `${admin}/clients/${client.id}`, { json })
      },
      async endLogins() {
        await administer('DELETE', `${admin}/oauth2/auth/sessions/consent?subject=ada&all=true`)
      },
      async rotateKeys() {
        const json = { alg: 'RS256', use: 'sig', kid: `key-${Date.now()}` }
        await administer('POST', `${admin}/keys/hydra.openid.id-token`, { json })
      }
    }
  }
}

/**
 * Serves the pages for login, consent and logout, which Hydra does not include. They accept every request for one
 * user.
 */
async function acceptAll(admin: string, { url = '' }: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(url, 'http://127.0.0.1')
  const kind = pathname.slice(1)
  const challenge = `${kind}_challenge=${encodeURIComponent(searchParams.get(`${kind}_challenge`) ?? '')}`
  const address = `${admin}/oauth2/auth/requests/${kind}`
  const json = kind === 'consent' ? await consent(`${address}?${challenge}`) : { subject: 'ada', remember: true }
  const { redirect_to } = (await administer('PUT', `${address}/accept?${challenge}`, { json })) as {
    redirect_to: string
  }
  response.writeHead(302, { location: redirect_to }).end()
}

async function consent(address: string) {
  const { requested_scope, requested_access_token_audience } = (await administer('GET', address)) as Record<
    string,
    unknown
  >
  return {
    grant_scope: requested_scope,
    grant_access_token_audience: requested_access_token_audience,
    session: { id_token: { name: 'Ada Lovelace', given_name: 'Ada', family_name: 'Lovelace' } }
  }
}
