import test from 'ava'
import { outboundProxy } from '#src/config/outbound-proxy.js'
import { goldenFile } from '../helpers/golden.js'
import { readText } from '../helpers/repository.js'

const file = 'test/config/outbound-proxy.txt'

// The test is serial, because proxy-from-env reads the environment of the process.
test.serial('proxies of the environment', t => {
  const before = process.env
  t.teardown(() => {
    process.env = before
  })
  const [, ...lines] = readText(file).trimEnd().split('\n')
  const inputs = lines.map(line => line.split(' → ', 1).join(''))
  const outputs = inputs.map(input => {
    const words = input.split(' ')
    process.env = Object.fromEntries(words.slice(0, -1).map(word => word.split('=')))
    return `${input} → ${outboundProxy(words.at(-1) ?? '') ?? 'no proxy'}`
  })
  process.env = before
  goldenFile(file)(t, outputs.join('\n'))
})
