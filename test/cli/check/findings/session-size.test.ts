import { createHash } from 'node:crypto'
import test, { type ExecutionContext } from 'ava'
import { sessionSize } from '#src/cli/check/findings/session-size.js'
import { openProvider } from '#src/cli/check/provider.js'
import { sampleToken } from '#src/cli/check/sample-token.js'
import type { Config } from '#src/config/settings.js'
import { type DeepPartial, testConfig } from '../../../helpers/config.js'
import { modes } from '../../../helpers/modes.js'
import { someProvider } from '../checked.js'

async function sizes(t: ExecutionContext, overrides: DeepPartial<Config>) {
  const config = testConfig(someProvider, overrides)
  const provider = openProvider(config, Date.now)
  t.teardown(() => provider.transport.close())
  return sessionSize(config, provider.idp, Date.now)
}

/** Returns this number of scopes for single designs. */
function designs(count: number): string[] {
  const id = (index: number) => createHash('sha256').update(String(index)).digest('base64url').slice(0, 22)
  return Array.from({ length: count }, (_, index) => `data:read:urn:adsk.wipprod:dm.lineage:${id(index)}`)
}

test('the sample token is as long as the tokens of Autodesk Platform Services', t => {
  for (const scope of [['viewables:read'], ['data:read', 'account:read', 'account:write']]) {
    const { length } = sampleToken(someProvider.clientId, scope, Date.now())
    t.true(length > 900 && length < 1100, String(length))
  }
  t.true(sampleToken(someProvider.clientId, designs(20), Date.now()).length > 2000)
})

test('with the default scopes a session fits into one cookie and the default limits of all proxies', async t => {
  for (const mode of modes) {
    const [cookie, headers] = await sizes(t, { mode })
    t.is(cookie?.status, 'ok')
    t.regex(cookie?.message ?? '', /^A session takes about \d,\d00 characters in one cookie\.$/)
    t.is(headers?.status, 'ok')
    t.regex(
      headers?.message ?? '',
      /^Requests carry \d\.\d kB of headers and the callback answers with \d\.\d kB, which nginx, Apache and HAProxy accept by default\.$/
    )
  }
})

test('with scopes for many designs a session takes several cookies, and proxies need larger limits', async t => {
  const [cookie, headers] = await sizes(t, { platform: { scopes: ['data:read', ...designs(120)] } })
  t.is(cookie?.status, 'warning')
  t.regex(cookie?.message ?? '', /^A session takes about \d,\d00 characters in 2 cookies\.$/)
  t.is(cookie?.next, 'Request fewer scopes if you can, because every request carries all these cookies.')
  t.is(headers?.status, 'warning')
  t.regex(
    headers?.message ?? '',
    /^Requests carry \d\.\d kB of headers and the callback answers with \d\.\d kB, which is more than nginx accepts by default\.$/
  )
  t.is(
    headers?.next,
    'If such a proxy forwards the requests, set for nginx: proxy_buffer_size 32k and proxy_buffers 8 32k.'
  )
})

test('with more scopes check lists more settings of reverse proxies that must be raised', async t => {
  const platform = { internalScopes: designs(240), publicScopes: designs(120) }
  const [cookie, headers] = await sizes(t, { mode: 'dual', platform })
  t.regex(cookie?.message ?? '', /in [34] cookies\.$/)
  t.is(
    headers?.next,
    'If such a proxy forwards the requests, set for nginx: proxy_buffer_size 32k and proxy_buffers 8 32k, large_client_header_buffers 8 32k; Apache: LimitRequestFieldSize 32768, ProxyIOBufferSize 32768.'
  )
})

test('check fails for a session that does not fit into four cookies', async t => {
  const platform = { internalScopes: designs(600), publicScopes: designs(599) }
  const [cookie, ...others] = await sizes(t, { mode: 'dual', platform })
  t.is(cookie?.status, 'failed')
  t.regex(
    cookie?.message ?? '',
    /^A session would take about \d\d,\d00 characters, which does not fit into four cookies, so nobody could sign in\.$/
  )
  t.is(cookie?.next, 'Request fewer scopes.')
  t.deepEqual(others, [])
})
