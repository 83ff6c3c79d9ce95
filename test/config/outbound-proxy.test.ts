import test from 'ava'
import { outboundProxy } from '#src/config/outbound-proxy.js'
import { assertCases } from '../helpers/case-file.js'

// The test is serial, because proxy-from-env reads the environment of the process.
test.serial('the environment and the called URL decide which proxy is used', t => {
  const before = process.env
  t.teardown(() => {
    process.env = before
  })
  return assertCases(t, 'test/config/outbound-proxy.txt', input => {
    const words = input.split(' ')
    process.env = Object.fromEntries(words.slice(0, -1).map(word => word.split('=')))
    return outboundProxy(words.at(-1) ?? '') ?? 'no proxy'
  })
})
