import test from 'ava'
import { checkValue } from '#src/config/check-value.js'
import { namesFile, required, settingKeys, settingOf } from '#src/config/settings.js'

for (const name of ['env', 'flag'] as const) {
  test(`no two settings have the same ${name}`, t => {
    const names = settingKeys.flatMap(key => settingOf(key)[name] ?? [])
    t.deepEqual(names, [...new Set(names)])
  })
}

test('every default is a valid value of its setting', t => {
  for (const key of settingKeys) {
    const { default: value } = settingOf(key)
    if (value !== required && value !== undefined) t.deepEqual(checkValue(key, value), { value }, key)
  }
})

test('no flag takes a secret as its value, except --redis-url, because most addresses contain no password', t => {
  const secretFlags = settingKeys.filter(key => settingOf(key).secret && settingOf(key).flag)
  const withValue = secretFlags.filter(key => !namesFile(settingOf(key).flag))
  t.deepEqual(withValue, ['redis.url'])
})

test('variable and flag follow from the key, except for the names of the contract and their companions', t => {
  const variables = {
    PORT: 'port',
    SERVER_SESSION_SECRET: 'session.secret',
    SERVER_SESSION_PREVIOUS_SECRETS: 'session.previousSecrets',
    INTERNAL_TOKEN_SCOPES: 'platform.internalTokenScopes',
    PUBLIC_TOKEN_SCOPES: 'platform.publicTokenScopes'
  }
  const flags = { '--api-proxy': 'apiProxy.rules' }
  const exceptions = new Map<string, string>([...Object.entries(variables), ...Object.entries(flags)])
  for (const key of settingKeys) {
    const { env, flag, secret } = settingOf(key)
    const words = key.replace('.', '_').replace(/[A-Z]/g, letter => `_${letter}`)
    const isFamily = /^(platform|redis|log)\./.test(key)
    const variable = `${isFamily ? '' : 'PLATFORM_AUTH_'}${words.toUpperCase()}`
    if (exceptions.get(env) !== key) t.is(env, variable)
    const kebab = words
      .toLowerCase()
      .replaceAll('_', '-')
      .replace(/^platform-/, '')
    const name = flag?.split(' ', 1).join('')
    if (name === undefined || exceptions.get(name) === key) continue
    t.is(name, `--${kebab}${secret && name !== '--redis-url' ? '-file' : ''}`)
  }
})
