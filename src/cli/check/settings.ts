import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { isClaimEntry } from '../../config/access-entry.js'
import { type ConfigError, describeProblem, type Problem } from '../../config/errors.js'
import type { LoadedConfig } from '../../config/load.js'
import type { Config } from '../../config/settings.js'
import type { Environment } from '../../config/sources.js'
import { messageOf } from '../errors.js'
import { type Finding, failed, ok, warning } from './report.js'

export function checkSettings({ warnings, file }: LoadedConfig): Finding[] {
  const source = file === undefined ? 'without a settings file' : `with the file ${file}`
  return [ok('settings', `The settings are valid (${source}).`), ...warnings.map(warningOf)]
}

/** Reports invalid settings. They need no advice, because each message already contains the allowed values. */
export function invalidSettings({ problems, warnings }: ConfigError): Finding[] {
  return [
    ...problems.map((problem): Finding => ({ check: 'settings', status: 'failed', message: describeProblem(problem) })),
    ...warnings.map(warningOf)
  ]
}

function warningOf(problem: Problem): Finding {
  return warning('settings', describeProblem(problem), 'Change this setting, unless its value is intended.')
}

/** Warns that the access list needs certain claims. Only a real login shows if the provider sends these claims. */
export function checkAccessList({ access: { allow } }: Config): Finding[] {
  if (!allow) return []
  const claims = allow.filter(isClaimEntry)
  const hasAddresses = claims.length < allow.length
  const address = 'an e-mail address with "email_verified": true'
  const needs = [...(hasAddresses ? [address] : []), ...claims.map(({ text }) => text)]
  const names = [...(hasAddresses ? ['email_verified'] : []), ...new Set(claims.map(({ claim }) => claim))]
  const message = `access.allow admits only accounts whose ID token or user info has ${needs.join(' or ')}. If the provider does not send ${names.join(' or ')}, nobody can sign in.`
  const next = 'Sign in once to test this. Providers other than APS may need the scopes openid and email.'
  return [warning('access', message, next)]
}

/** Reports a failure if the environment tells Node not to verify TLS certificates. */
export function checkTls(env: Environment): Finding[] {
  if (env.NODE_TLS_REJECT_UNAUTHORIZED !== '0') return []
  const message =
    'NODE_TLS_REJECT_UNAUTHORIZED=0 disables the verification of TLS certificates, so others on the network can read the client secret and the tokens.'
  const next = 'Remove it. To trust your own certificate authority, set NODE_EXTRA_CA_CERTS.'
  return [failed('tls', message, next)]
}

/** Checks that there is a start page for people who have signed in. */
export async function checkWwwroot({ wwwroot: folder }: Config): Promise<Finding[]> {
  if (folder === undefined) return [ok('wwwroot', 'No folder is set, so the built-in starter page is served.')]
  const page = join(folder, 'index.html')
  try {
    await access(page, constants.R_OK)
    return [ok('wwwroot', `${page} is the start page.`)]
  } catch {
    const message = `${page} cannot be read, so people get a 404 response after signing in.`
    return [warning('wwwroot', message, 'Create this file, or set wwwroot to the folder of your pages.')]
  }
}

/** Imports the module of the setting `extend`, as the server does when it starts. Does not call the exported function. */
export async function checkExtend({ extend: path }: Config): Promise<Finding[]> {
  if (path === undefined) return []
  // Koa is loaded late, because `start` imports this file, too.
  const { loadExtension } = await import('../../http/routes/extension.js')
  try {
    await loadExtension(path)
    return [ok('extend', `${path} exports a function that can add routes.`)]
  } catch (error) {
    return [failed('extend', `${messageOf(error)}.`, 'Correct the module. The server cannot start with it.')]
  }
}
