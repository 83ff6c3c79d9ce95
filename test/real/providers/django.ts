import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../helpers/ports.js'
import { repository } from '../../helpers/repository.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { cacheFolder, hasStatus, run, startService } from '../programs.js'
import { administer, client, type ProviderKind, person } from './provider.js'

const version = '3.0.1'
const packages = [`django-oauth-toolkit==${version}`, 'Django==5.2.8']
const environment = join(cacheFolder, `django-oauth-toolkit-${version}`)
const python = join(environment, 'bin', 'python')
const mark = join(environment, 'complete')

export const django: ProviderKind = {
  name: 'Django OAuth Toolkit',
  version,
  needs: 'python3',
  exceptions: {
    // Django shows its login page before it checks the client.
    'check with a wrong callback URL': 'ok',
    'back-channel logout': 'not supported',
    'access by group': 'not supported',
    'refresh, dual': '401 at refresh 1',
    '100 parallel requests, dual': '401 with 0 calls',
    'new signing keys, dual': '401 at the refresh'
  },
  async start(t) {
    await install()
    const port = await freePort()
    const base = `http://127.0.0.1:${port}`
    const issuer = `${base}/o`
    const folder = await tempFolder(t)
    await startService(
      t,
      {
        command: python,
        args: [join(repository, 'test', 'real', 'providers', 'django-project.py')],
        env: {
          TEST_PORT: String(port),
          TEST_DATABASE: join(folder, 'database.sqlite3'),
          TEST_CLIENT: JSON.stringify(client),
          TEST_PERSON: JSON.stringify(person)
        }
      },
      () => hasStatus(`${issuer}/.well-known/openid-configuration`, 200)
    )
    return {
      settings: {
        single: {
          PLATFORM_ISSUER: issuer,
          PLATFORM_SCOPES: 'openid data:read',
          PLATFORM_REVOCATION_ENDPOINT: `${issuer}/revoke_token/`
        },
        dual: {
          PLATFORM_ISSUER: issuer,
          PLATFORM_REVOCATION_ENDPOINT: `${issuer}/revoke_token/`,
          INTERNAL_TOKEN_SCOPES: 'openid data:read viewables:read',
          PUBLIC_TOKEN_SCOPES: 'viewables:read'
        }
      },
      async endLogins() {
        await administer('POST', `${base}/test/end-logins`)
      },
      async rotateKeys() {
        await administer('POST', `${base}/test/rotate-keys`)
      }
    }
  }
}

async function install(): Promise<void> {
  if (existsSync(mark)) return
  await run({ command: 'python3', args: ['-m', 'venv', '--clear', environment] })
  await run({ command: python, args: ['-m', 'pip', 'install', '--quiet', ...packages] })
  await run({ command: 'touch', args: [mark] })
}
