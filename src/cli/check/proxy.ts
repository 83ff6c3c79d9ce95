import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { ProxyRule } from '../../config/proxy-rules.js'
import type { Config } from '../../config/settings.js'
import { errorCode } from '../../support/error-code.js'
import { explainConnectionError } from './errors.js'
import { type Finding, failed, ok, warning } from './report.js'

const TIMEOUT_SECONDS = 10

/** Connects to the target of every proxy rule. Warns about rules for a known API whose scopes the token lacks. */
export async function checkProxy(config: Config): Promise<Finding[]> {
  const rules = config.proxy.routes
  const origins = [...new Set(rules.map(({ targetOrigin }) => targetOrigin))]
  const connections = await Promise.all(origins.map(origin => tryToConnect(origin)))
  return [...connections, ...rules.flatMap(rule => missingScopes(rule, config))]
}

async function tryToConnect(origin: string): Promise<Finding> {
  try {
    await connectOnce(new URL(origin))
    return ok('proxy', `${origin} accepts connections.`)
  } catch (error) {
    const place = { host: new URL(origin).host, setting: 'proxy.routes', timeoutSeconds: TIMEOUT_SECONDS }
    const { message, next } = explainConnectionError(errorCode(error), place)
    return failed('proxy', message, next)
  }
}

function connectOnce({ protocol, hostname, port }: URL): Promise<void> {
  // In a URL, an IPv6 address has brackets. The functions below need the address without brackets.
  const host = hostname.replace(/^\[|\]$/g, '')
  const isTls = protocol === 'https:'
  const address = { host, port: Number(port || (isTls ? 443 : 80)) }
  return new Promise((resolve, reject) => {
    const done = () => {
      socket.destroy()
      resolve()
    }
    const servername = /^[\d.]+$|:/.test(host) ? {} : { servername: host }
    const socket: Socket = isTls ? connectTls({ ...address, ...servername }, done) : connectPlain(address, done)
    socket.once('error', reject)
    socket.setTimeout(TIMEOUT_SECONDS * 1000, () => socket.destroy(Object.assign(new Error(), { code: 'ETIMEDOUT' })))
  })
}

interface ScopeRequirement {
  readonly path: RegExp
  readonly methods: readonly string[]
  /** The API accepts a token that has one of these scopes. */
  readonly scopes: readonly string[]
}

const READING = ['GET']
const WRITING = ['POST', 'PUT', 'PATCH', 'DELETE']

// The scopes that the documentation of Autodesk Platform Services requires. A path without an entry is not checked.
const KNOWN_HOST = 'https://developer.api.autodesk.com'
const REQUIREMENTS: readonly ScopeRequirement[] = [
  { path: /^\/(project|data)\/v1\//, methods: READING, scopes: ['data:read', 'data:search'] },
  { path: /^\/(project|data)\/v1\/projects\//, methods: ['PATCH', 'DELETE'], scopes: ['data:write'] },
  { path: /^\/construction\/issues\/v1\//, methods: READING, scopes: ['data:read'] },
  { path: /^\/construction\/issues\/v1\//, methods: WRITING, scopes: ['data:write'] },
  { path: /^\/modelderivative\/v2\//, methods: READING, scopes: ['viewables:read', 'data:read'] },
  { path: /^\/construction\/admin\/v1\//, methods: READING, scopes: ['account:read'] },
  { path: /^\/construction\/admin\/v1\//, methods: WRITING, scopes: ['account:write'] }
]

function missingScopes(
  { methods, target, targetOrigin, token, text }: ProxyRule,
  { mode, platform }: Config
): Finding[] {
  if (targetOrigin !== KNOWN_HOST) return []
  const dualScopes = token === 'public' ? platform.publicScopes : platform.internalScopes
  const scopes = mode === 'dual' ? dualScopes : platform.scopes
  const path = `${target.segments.map(segment => `/${segment}`).join('')}/`
  const hasScope = (needed: string) => scopes.some(scope => scope === needed || scope.startsWith(`${needed}:`))
  const unmet = REQUIREMENTS.filter(
    requirement =>
      requirement.path.test(path) &&
      requirement.methods.some(method => methods.includes(method)) &&
      !requirement.scopes.some(hasScope)
  )
  return unmet.map(requirement => {
    const used = requirement.methods.filter(method => methods.includes(method)).join(', ')
    const setting = mode === 'single' ? 'platform.scopes' : `platform.${token}Scopes`
    const message = `The rule ${text} cannot work for ${used}. The API requires ${requirement.scopes.join(' or ')}, but the token has ${scopes.join(' ')}.`
    return warning('proxy', message, `Add the scope to ${setting}, or remove the method from the rule.`)
  })
}
