import { configOf } from '#src/config/load.js'
import {
  type Config,
  required,
  type SettingKey,
  type Settings,
  settingKeys,
  settingOf,
  type Values
} from '#src/config/settings.js'
import type { HostileIdp } from './hostile-idp/index.js'

export type DeepPartial<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { [K in keyof T]?: DeepPartial<T[K]> }
    : T

/** Settings as a file would contain them. `undefined` switches an optional setting off. */
export type TestSettings = {
  readonly [Key in keyof Settings]?: DeepPartial<Exclude<Settings[Key], null>> | undefined
}

/**
 * The address under which browsers know the server under test. The server listens on a free port, and the browser
 * helper connects to that port (`connectTo`) as a reverse proxy would. The callback address is therefore known before
 * the server starts, and it may be https.
 */
export const publicOrigin = 'http://localhost:8080'
export const defaultCallbackUrl = `${publicOrigin}/api/auth/callback`

const nowhere = 'http://127.0.0.1:9/'

/** An identity provider that cannot be reached, for tests without a login. */
export const unreachableIdp = {
  clientId: 'client',
  clientSecret: 'client-secret',
  authorizationEndpoint: nowhere,
  tokenEndpoint: nowhere,
  userinfoEndpoint: nowhere,
  revocationEndpoint: nowhere,
  endSessionEndpoint: nowhere
}
export type KnownIdp = Readonly<typeof unreachableIdp>

/**
 * Complete, valid settings for a server whose identity provider is `idp`. Every setting that is not given here has its
 * default, except the time limit for requests to the provider.
 */
export function testConfig(idp: KnownIdp, settings: TestSettings = {}): Config {
  const ofTests: TestSettings = {
    port: 0,
    host: '127.0.0.1',
    session: { secret: 'session-secret-for-tests-qL3vX9pTz7RmYw2K' },
    platform: {
      clientId: idp.clientId,
      clientSecret: idp.clientSecret,
      callbackUrl: defaultCallbackUrl,
      authorizationEndpoint: idp.authorizationEndpoint,
      tokenEndpoint: idp.tokenEndpoint,
      userinfoEndpoint: idp.userinfoEndpoint,
      revocationEndpoint: idp.revocationEndpoint,
      endSessionEndpoint: idp.endSessionEndpoint,
      // The default is 10 seconds, within which a slow machine does not always respond.
      timeout: 60
    },
    log: { level: 'trace', format: 'json', requests: true },
    shutdown: { grace: 10 }
  }
  return parsed(merge(ofTests, settings))
}

/**
 * Adds the defaults, and parses the settings whose parsed value has another form. The others, and numbers of seconds and bytes,
 * may have values that no operator may set.
 */
function parsed(written: unknown): Config {
  const settingValue = (key: SettingKey): unknown => {
    const { type, default: fallback } = settingOf(key)
    const [first = '', member] = key.split('.')
    const group = isPlain(written) && member !== undefined ? written[first] : written
    const name = member ?? first
    if (!isPlain(group) || !(name in group)) return fallback === required ? undefined : fallback
    const value = group[name]
    if (value === undefined || typeof value === 'number' || !type.write) return value
    const result = type.parse(value)
    if ('value' in result) return result.value
    throw new Error(`${key}: ${result.problems?.join() ?? result.reason}`)
  }
  const unknown = leavesOf(written).filter(path => !settingKeys.some(key => path === key || path.startsWith(`${key}.`)))
  if (unknown.length > 0) throw new Error(`not settings: ${unknown.join(', ')}`)
  return configOf(Object.fromEntries(settingKeys.map(key => [key, settingValue(key)])) as Values)
}

function leavesOf(value: unknown, path = ''): string[] {
  if (!isPlain(value)) return [path]
  return Object.entries(value).flatMap(([name, inner]) => leavesOf(inner, path === '' ? name : `${path}.${name}`))
}

/**
 * For `settings.platform`: removes the endpoints, so that the server reads them from the provider's discovery
 * document.
 */
export function discovered({ issuer }: Pick<HostileIdp, 'issuer'>): NonNullable<TestSettings['platform']> {
  return {
    issuer,
    authorizationEndpoint: undefined,
    tokenEndpoint: undefined,
    userinfoEndpoint: undefined,
    revocationEndpoint: undefined,
    endSessionEndpoint: undefined
  }
}

/** An override of undefined switches an optional setting off. A list replaces the whole default list. */
function merge(base: unknown, settings: unknown): unknown {
  if (!isPlain(base) || !isPlain(settings)) return settings
  const merged: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(settings)) {
    merged[key] = isPlain(merged[key]) && isPlain(value) ? merge(merged[key], value) : value
  }
  return merged
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
