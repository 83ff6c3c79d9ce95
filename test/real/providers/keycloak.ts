import { join } from 'node:path'
import { freePort } from '../../helpers/ports.js'
import { hasStatus, startService, unpackArchive } from '../programs.js'
import { administer, client, type ProviderKind, person } from './provider.js'

const version = '26.5.6'
const archive = [
  `keycloak-${version}`,
  `https://repo.maven.apache.org/maven2/org/keycloak/keycloak-quarkus-dist/${version}/keycloak-quarkus-dist-${version}.tar.gz`,
  'fa3dd5df90b9ac006712c2f0991be4e8a6cb30ac538e0439ce2f45fc40f4c692'
] as const

const administrator = { username: 'admin', password: 'an-administrator-of-these-tests' }
const scopes = ['data:read', 'viewables:read']

export const keycloak: ProviderKind = {
  name: 'Keycloak',
  version,
  needs: 'java',
  exceptions: {},
  async start(t) {
    const folder = await unpackArchive(...archive)
    const port = await freePort()
    const base = `http://127.0.0.1:${port}`
    const issuer = `${base}/realms/test`
    await startService(
      t,
      {
        command: join(folder, 'bin', 'kc.sh'),
        args: ['start-dev', '--http-host=127.0.0.1', `--http-port=${port}`, '--cache=local', '--db=dev-mem'],
        env: {
          KC_BOOTSTRAP_ADMIN_USERNAME: administrator.username,
          KC_BOOTSTRAP_ADMIN_PASSWORD: administrator.password,
          JAVA_OPTS_KC_HEAP: '-Xms256m -Xmx768m'
        }
      },
      () => hasStatus(`${base}/realms/master`, 200)
    )
    const admin = await administration(base)
    await createRealm(admin)
    return {
      settings: {
        single: { PLATFORM_ISSUER: issuer, PLATFORM_SCOPES: 'openid data:read' },
        dual: {
          PLATFORM_ISSUER: issuer,
          INTERNAL_TOKEN_SCOPES: 'openid data:read viewables:read',
          PUBLIC_TOKEN_SCOPES: 'viewables:read'
        }
      },
      async registerBackchannelLogout(url) {
        const [found] = (await admin('GET', `/realms/test/clients?clientId=${client.id}`)) as { id: string }[]
        const attributes = {
          'post.logout.redirect.uris': client.homeUrl,
          'backchannel.logout.url': url,
          'backchannel.logout.session.required': 'true'
        }
        await admin('PUT', `/realms/test/clients/${found?.id}`, { ...found, attributes })
      },
      async setAdmin(isAdmin) {
        const [user] = (await admin('GET', `/realms/test/users?username=${person.userName}`)) as { id: string }[]
        const [group] = (await admin('GET', '/realms/test/groups?search=admins')) as { id: string }[]
        await admin(isAdmin ? 'PUT' : 'DELETE', `/realms/test/users/${user?.id}/groups/${group?.id}`)
      },
      async endLogins() {
        await admin('POST', '/realms/test/logout-all', {})
      },
      async rotateKeys() {
        const realm = (await admin('GET', '/realms/test')) as { id: string }
        await admin('POST', '/realms/test/components', {
          name: `key-${Date.now()}`,
          providerId: 'rsa-generated',
          providerType: 'org.keycloak.keys.KeyProvider',
          parentId: realm.id,
          config: { priority: [String(Date.now() % 1_000_000_000)], enabled: ['true'], active: ['true'] }
        })
      }
    }
  }
}

type Administration = (method: string, path: string, json?: unknown) => Promise<unknown>

async function administration(base: string): Promise<Administration> {
  return async (method, path, json) => {
    const form = { grant_type: 'password', client_id: 'admin-cli', ...administrator }
    const answer = await administer('POST', `${base}/realms/master/protocol/openid-connect/token`, { form })
    const { access_token: token } = answer as { access_token: string }
    return administer(method, `${base}/admin${path}`, { token, json })
  }
}

async function createRealm(admin: Administration): Promise<void> {
  await admin('POST', '/realms', {
    realm: 'test',
    enabled: true,
    sslRequired: 'none',
    // Refresh tokens are single-use, which is more difficult for a client.
    revokeRefreshToken: true,
    refreshTokenMaxReuse: 0
  })
  for (const name of scopes) {
    const attributes = { 'include.in.token.scope': 'true', 'display.on.consent.screen': 'false' }
    await admin('POST', '/realms/test/client-scopes', { name, protocol: 'openid-connect', attributes })
  }
  await admin('POST', '/realms/test/clients', {
    clientId: client.id,
    secret: client.secret,
    protocol: 'openid-connect',
    publicClient: false,
    standardFlowEnabled: true,
    redirectUris: [client.callbackUrl],
    // The scopes that Keycloak's administration pages give to a new client.
    defaultClientScopes: ['acr', 'basic', 'email', 'profile', 'roles', 'web-origins'],
    optionalClientScopes: [...scopes, 'offline_access'],
    attributes: { 'post.logout.redirect.uris': client.homeUrl },
    protocolMappers: [
      {
        name: 'groups',
        protocol: 'openid-connect',
        protocolMapper: 'oidc-group-membership-mapper',
        config: { 'claim.name': 'groups', 'full.path': 'false', 'id.token.claim': 'true' }
      }
    ]
  })
  await admin('POST', '/realms/test/groups', { name: 'admins' })
  await admin('POST', '/realms/test/users', {
    username: person.userName,
    email: person.email,
    emailVerified: true,
    firstName: 'Ada',
    lastName: 'Lovelace',
    enabled: true,
    credentials: [{ type: 'password', value: person.password, temporary: false }]
  })
}
