import { setTimeout as pause } from 'node:timers/promises'
import { createBrowser } from '../../helpers/browser.js'
import { freePort } from '../../helpers/ports.js'
import { inScope } from '../../helpers/scope.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { buildGoProgram, hasStatus, startService } from '../programs.js'
import { signInOnPages } from './pages.js'
import { client, keyIds, type ProviderKind } from './provider.js'

// The bcrypt hash (cost 10) of the password in provider.ts.
const PASSWORD_HASH = '$2a$10$uQOdSS4/ajBAuF4RLMVgoOkppr0HDn9FDxpCdL3/i5WV.klFRMIhq'

// Dex's release tags have a major version that is not in its module path, so Go can only use the commit of a release.
const program = {
  name: 'dex-2.45.1',
  module: 'github.com/dexidp/dex',
  version: 'v0.0.0-20260303133905-11d2eeb52b42',
  package: 'github.com/dexidp/dex/cmd/dex'
} as const

export const dex: ProviderKind = {
  name: 'Dex',
  version: '2.45.1',
  needs: 'go',
  exceptions: {
    'check with logout.idp': 'failed: logout',
    'logout: revoke': 'not revoked',
    'logout: idp': 'here only',
    'back-channel logout': 'not supported',
    'access by group': 'not supported',
    // Its refusal may be temporary, and no other session is refreshed meanwhile (ARCHITECTURE.md, ambiguous refusals).
    'an ended login': 'works after 615 s'
  },
  async start(t) {
    const executable = await buildGoProgram(program)
    const port = await freePort()
    const issuer = `http://127.0.0.1:${port}/dex`
    const folder = await tempFolder(t, { 'config.json': JSON.stringify(configuration(issuer, port)) })
    await startService(t, { command: executable, args: ['serve', `${folder}/config.json`] }, () =>
      hasStatus(`${issuer}/.well-known/openid-configuration`, 200)
    )
    return {
      settings: {
        single: { PLATFORM_ISSUER: issuer, PLATFORM_SCOPES: 'openid profile email offline_access' },
        dual: {
          PLATFORM_ISSUER: issuer,
          INTERNAL_TOKEN_SCOPES: 'openid profile email offline_access',
          PUBLIC_TOKEN_SCOPES: 'openid profile'
        }
      },
      // Dex has no administration interface over HTTP. It keeps one refresh token for each user and client, so a
      // second login ends the first one.
      async endLogins() {
        const { authorization_endpoint, token_endpoint } = await discover(issuer)
        const query = {
          client_id: client.id,
          response_type: 'code',
          redirect_uri: client.callbackUrl,
          scope: 'openid offline_access',
          state: 'elsewhere'
        }
        const back = await inScope(t =>
          signInOnPages(
            createBrowser(t, { origin: client.homeUrl }),
            `${authorization_endpoint}?${new URLSearchParams(query)}`
          )
        )
        const form = {
          grant_type: 'authorization_code',
          code: new URL(back).searchParams.get('code') ?? '',
          redirect_uri: client.callbackUrl,
          client_id: client.id,
          client_secret: client.secret
        }
        const response = await fetch(token_endpoint, { method: 'POST', body: new URLSearchParams(form) })
        if (!response.ok) throw new Error(`The second login: ${response.status} ${await response.text()}`)
      },
      // Keys expire after a minute, and Dex replaces expired keys twice a minute.
      async rotateKeys() {
        const before = await keyIds(`${issuer}/keys`)
        const deadline = Date.now() + 150_000
        while ((await keyIds(`${issuer}/keys`)) === before) {
          if (Date.now() > deadline) throw new Error('Dex did not rotate its keys')
          await pause(1000)
        }
      }
    }
  }
}

function configuration(issuer: string, port: number) {
  return {
    issuer,
    storage: { type: 'memory' },
    web: { http: `127.0.0.1:${port}` },
    oauth2: { skipApprovalScreen: true },
    expiry: { signingKeys: '1m', idTokens: '10m' },
    enablePasswordDB: true,
    staticClients: [
      { id: client.id, secret: client.secret, name: 'Platform Auth Server', redirectURIs: [client.callbackUrl] }
    ],
    staticPasswords: [
      {
        email: 'ada@mail.example',
        hash: PASSWORD_HASH,
        username: 'Ada Lovelace',
        userID: 'b7f0c1de-0000-4000-8000-000000000001'
      }
    ]
  }
}

async function discover(issuer: string) {
  const response = await fetch(`${issuer}/.well-known/openid-configuration`)
  return (await response.json()) as { authorization_endpoint: string; token_endpoint: string }
}
