import { flagName, groups, isSettingKey, settingKeys, settingOf, wordsOf } from './settings.js'

/**
 * The settings whose names changed before version 1.0, and what replaces them. Whoever still gives an old key, variable or flag
 * is told the new name. This file can be removed with the first release after 1.0.
 */
const renamed: Readonly<Record<string, string>> = {
  keepAliveSeconds: 'keepAlive',
  extend: 'extension',
  logout: 'logout.revoke and logout.idp',
  trustProxy: 'log.trustForwardedFor',
  'session.maxAgeSeconds': 'session.inactivityTimeout',
  'session.absoluteMaxAgeSeconds': 'session.maxLifetime',
  'platform.internalScopes': 'platform.internalTokenScopes',
  'platform.publicScopes': 'platform.publicTokenScopes',
  'platform.clientAuthentication': 'platform.clientAuthMethod',
  'platform.clientKeyAlgorithm': 'alg in the JWK of platform.clientKey',
  'platform.backChannelLogout': 'platform.backchannelLogout',
  'platform.prompt': 'the parameter prompt of platform.authorizationParams',
  'platform.timeoutSeconds': 'platform.timeout',
  'refresh.marginSeconds': 'refresh.beforeExpiry',
  'refresh.spreadSeconds': 'refresh.jitter',
  'profile.keepSeconds': 'profile.cacheTtl',
  proxy: 'apiProxy.rules',
  'proxy.routes': 'apiProxy.rules',
  'proxy.requestHeaders': 'apiProxy.requestHeaders',
  'proxy.responseHeaders': 'apiProxy.responseHeaders',
  'proxy.timeoutSeconds': 'apiProxy.timeout',
  'proxy.maxBodyBytes': 'apiProxy.maxBody',
  'proxy.csrfHeader': 'apiProxy.csrfHeader',
  redisUrl: 'redis.url',
  'redisTls.caFile': 'redis.caFile',
  'redisTls.certFile': 'redis.certFile',
  'redisTls.keyFile': 'redis.keyFile',
  'log.pretty': 'log.format',
  'pages.name': 'branding.name',
  'pages.logo': 'branding.logo',
  'pages.accent': 'branding.color',
  'pages.folder': 'branding.folder',
  'forwardAuth.port': 'forwardAuth.address',
  'forwardAuth.host': 'forwardAuth.address',
  'metrics.port': 'metrics.address',
  'metrics.host': 'metrics.address',
  'shutdown.delaySeconds': 'shutdown.delay',
  'shutdown.graceSeconds': 'shutdown.grace'
}

/** Variables that did not follow from the key of their setting. */
const renamedVariables: Readonly<Record<string, string>> = {
  PLATFORM_AUTH_COOKIE_NAME: 'session.cookieName',
  PLATFORM_AUTH_LOG_REQUESTS: 'log.requests'
}

const newNames = new Map(
  Object.entries(renamed).flatMap(([key, replacement]) => {
    const words = wordsOf(key.replace(/(Seconds|Bytes)$/, ''))
    const variable = /^(platform|redis)/.test(key) ? words : `PLATFORM_AUTH_${words}`
    return [
      [key, replacement],
      [variable, envOf(replacement)],
      [
        `--${words
          .toLowerCase()
          .replaceAll('_', '-')
          .replace(/^platform-/, '')}`,
        flagOf(replacement)
      ]
    ] as const
  })
)
for (const [variable, key] of Object.entries(renamedVariables)) newNames.set(variable, envOf(key))
const currentNames = new Set<string>(settingKeys.flatMap(key => [key, settingOf(key).env, flagOf(key)]))

/** Returns what to write instead of an old key, variable or flag, as a sentence. Returns undefined for any other name. */
export function replacementOf(name: string): string | undefined {
  const replacement = currentNames.has(name) ? undefined : newNames.get(name)
  return replacement && `was replaced by ${replacement}.`
}

/** True if the name is that of an old group, such as `proxy`. */
export function isRenamedGroup(name: string): boolean {
  return !groups.includes(name) && Object.keys(renamed).some(key => key.startsWith(`${name}.`))
}

function envOf(replacement: string): string {
  return isSettingKey(replacement) ? settingOf(replacement).env : replacement
}

function flagOf(replacement: string): string {
  const { flag, env } = isSettingKey(replacement) ? settingOf(replacement) : {}
  return flag === undefined ? (env ?? replacement) : flagName(flag)
}
