import test from 'ava'
import { outbound } from '#src/cli/check/findings/outbound.js'
import { openProvider } from '#src/cli/check/provider.js'
import { testConfig } from '../../../helpers/config.js'
import { someProvider } from '../checked.js'

test.serial(
  'check shows the HTTP proxy for each provider address, and the addresses that are called directly',
  async t => {
    const before = { ...process.env }
    t.teardown(() => {
      process.env = before
    })
    process.env = { HTTPS_PROXY: 'http://user:hunter2@proxy.corp:3128', NO_PROXY: 'b.example' }
    const config = testConfig(someProvider, { platform: { userinfoEndpoint: 'https://b.example/userinfo' } })
    const provider = openProvider(config, Date.now)
    t.teardown(() => provider.transport.close())
    t.deepEqual(await outbound(provider), [
      {
        check: 'proxy',
        status: 'ok',
        message: 'Calls to https://a.example go through the proxy http://***@proxy.corp:3128 from the environment.'
      },
      { check: 'proxy', status: 'ok', message: 'Calls to https://b.example use no proxy (NO_PROXY).' }
    ])
    process.env = { HTTPS_PROXY: 'socks5://proxy.corp:1080' }
    const [wrong] = await outbound(provider)
    t.is(wrong?.status, 'failed')
    process.env = {}
    t.deepEqual(await outbound(provider), [])
  }
)
