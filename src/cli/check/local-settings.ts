import { constants } from 'node:fs'
import { access, readdir } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { errorCode } from '../../base/error-code.js'
import type { LoadedConfig } from '../../config/load.js'
import { outboundProxy } from '../../config/outbound-proxy.js'
import type { Config } from '../../config/settings.js'
import type { Environment } from '../../config/sources/dot-env.js'
import { isClaimEntry } from '../../config/types/access-entry.js'
import { type ConfigError, type ConfigProblem, describeProblem } from '../../config/types/problem.js'
import { isProtectedFile } from '../../config/types/protected-files.js'
import { maskUrl } from '../../config/types/urls.js'
import type { Mode } from '../../login/mode.js'
import { quirksOf } from '../../provider/quirks.js'
import { isWellKnown } from '../../web/static/open-inside.js'
import { messageOf } from '../terminal/expected-errors.js'
import { type Finding, failed, ok, warning } from './findings.js'
import { explainCallError } from './network-errors.js'

export function checkSettings({ warnings, file }: LoadedConfig): Finding[] {
  const source = file === undefined ? 'without a settings file' : `with the file ${file}`
  return [ok`The settings are valid (${source}).`, ...warnings.map(findingWith('warning'))]
}

/** Reports invalid settings. No advice is added, because each message already contains the allowed values. */
export function invalidSettings({ problems, warnings }: ConfigError): Finding[] {
  return [...problems.map(findingWith('failed')), ...warnings.map(findingWith('warning'))]
}

function findingWith(status: Finding['status']) {
  return (problem: ConfigProblem): Finding => ({ status, message: describeProblem(problem) })
}

/** Warns that the access list needs certain claims. Only a real login shows whether the provider sends these claims. */
export function* checkAccessList({ access: { allow } }: Config): Generator<Finding> {
  if (!allow?.length) return
  const claims = allow.filter(isClaimEntry)
  const hasAddresses = claims.length < allow.length
  const address = 'an e-mail address with "email_verified": true'
  const needs = [...(hasAddresses ? [address] : []), ...claims.map(({ text }) => text)]
  const names = [...(hasAddresses ? ['email_verified'] : []), ...new Set(claims.map(({ claim }) => claim))]
  yield warning`access.allow admits only accounts whose ID token or user info has ${needs.join(' or ')}. If the provider does not send ${names.join(' or ')}, no user can sign in. A refresh without an ID token can check only claims of the user info. Next: Sign in once to test this. Providers other than APS may need the scopes openid and email.`
}

const NAMED_FILES = 5

/** Says which files everyone can read, if `access.files` protects some files. */
export async function checkFiles({ wwwroot, access: { files: patterns } }: Config): Promise<Finding[]> {
  if (!patterns || wwwroot === undefined) return []
  const entries = await readdir(wwwroot, { recursive: true, withFileTypes: true })
  const files = entries
    .filter(entry => !entry.isDirectory())
    .map(({ parentPath, name }) => relative(wwwroot, join(parentPath, name)).replaceAll(sep, '/'))
    .filter(file => !file.split('/').some((name, depth) => name.startsWith('.') && !isWellKnown(name, depth)))
  const open = files.filter(file => !isProtectedFile(file, patterns)).sort()
  const more = open.length > NAMED_FILES ? ` and ${open.length - NAMED_FILES} more` : ''
  const names = open.length === 0 ? 'none' : open.slice(0, NAMED_FILES).join(', ') + more
  return [ok`access.files protects ${files.length - open.length} of ${files.length} files. Public are: ${names}.`]
}

/** Reports a failure if the environment tells Node not to verify TLS certificates. */
export function* checkTls(env: Environment): Generator<Finding> {
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0')
    yield failed`NODE_TLS_REJECT_UNAUTHORIZED=0 disables the verification of the TLS certificates of APIs and Redis, so others on the network can read the tokens. Next: Remove it. To trust a private certificate authority, set NODE_EXTRA_CA_CERTS.`
}

/** Checks that there is a start page for users who have signed in. */
export async function checkWwwroot({ wwwroot: folder }: Config): Promise<Finding> {
  if (folder === undefined) return ok`No folder is set, so the built-in starter page is served.`
  const page = join(folder, 'index.html')
  try {
    await access(page, constants.R_OK)
    return ok`${page} is the start page.`
  } catch {
    return warning`${page} cannot be read, so users get a 404 response after signing in. Next: Create this file, or set wwwroot to the folder of your pages.`
  }
}

/** Imports the module of the setting `extension`, as the server does when it starts. Does not call the exported function. */
export async function checkExtension({ extension: path }: Config): Promise<Finding[]> {
  if (path === undefined) return []
  // This module loads Koa. It is imported only here, because `start` also imports this file and reads the working
  // directory before it loads Koa.
  const { loadExtension } = await import('../../web/routes/extension.js')
  try {
    await loadExtension(path)
    return [ok`${path} exports a function that can add routes.`]
  } catch (error) {
    return [failed`${messageOf(error)}. Next: Correct the module. The server cannot start until the module works.`]
  }
}

const WRITE_SCOPE = /:(write|create|update|delete|all)\b/

/** Warns if pages can change data with the public token (in dual mode, the access token for pages). */
export function* checkScopes({ platform }: Config, { offersPublicToken }: Mode): Generator<Finding> {
  const writing = platform.publicTokenScopes.filter(scope => WRITE_SCOPE.test(scope)).join(' ')
  if (offersPublicToken && writing !== '')
    yield warning`Every script in your pages has the public token, which allows changes (${writing}). Next: Put such scopes only into platform.internalTokenScopes.`
}

/** Warns if the provider supports OpenID Connect but the login does not request the scope `openid`. */
export function* checkOpenid({ config, sources }: LoadedConfig, { loginScope }: Mode): Generator<Finding> {
  const { issuer } = config.platform
  // The demo simulates Autodesk Platform Services, which identifies users without `openid`.
  const isNeeded = sources['platform.issuer'] !== 'demo' && issuer && !quirksOf({ issuer }).identifiesWithoutOpenid
  if (isNeeded && !loginScope.split(' ').includes('openid'))
    yield warning`platform.issuer is set, but openid is not among the scopes, so no ID token proves who signs in. Next: Add openid to the scopes, unless this provider supports only OAuth 2.0.`
}

const UPSTREAM_SECONDS = 10

/** Connects to the target of every proxy rule. */
export function checkProxy({ apiProxy: { rules } }: Config): Promise<Finding[]> {
  const origins = new Set(rules.map(({ targetOrigin }) => targetOrigin))
  return Promise.all([...origins].map(checkUpstream))
}

async function checkUpstream(origin: string): Promise<Finding> {
  const { protocol, hostname, host, port } = new URL(origin)
  const proxy = protocol === 'https:' ? outboundProxy(origin) : undefined
  const { createConnector } = await import('../../web/proxy/upstream.js')
  const connect = createConnector({ connectTimeoutMs: UPSTREAM_SECONDS * 1000, proxyFor: () => proxy })
  try {
    await new Promise<void>((resolve, reject) =>
      // In a URL, an IPv6 address has brackets.
      connect({ protocol, hostname: hostname.replace(/^\[|\]$/g, ''), host, port }, (error, socket) => {
        socket?.destroy()
        if (error) reject(error)
        else resolve()
      })
    )
    return ok`${origin} accepts connections${proxy === undefined ? '' : ` through the proxy ${maskUrl(proxy)}`}.`
  } catch (error) {
    const checked = { host, setting: 'apiProxy.rules', timeoutSeconds: UPSTREAM_SECONDS }
    return failed`${explainCallError(errorCode(error), proxy, checked)}`
  }
}
