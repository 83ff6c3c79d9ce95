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
