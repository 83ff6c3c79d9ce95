// A successful proxied request: what the upstream receives and what the client gets.
import test from 'ava'
import { modes } from '../helpers/modes.js'
import { startProxy, startUpstream } from '../helpers/upstream.js'

for (const mode of modes) {
  test(`in ${mode} mode a request that matches a rule reaches the upstream with the access token for the server`, async t => {
    const upstream = await startUpstream(t)
    const { browser, idp } = await startProxy(
      t,
      { rules: [`GET /api/hubs/** ${upstream.origin}/project/v1/hubs/**`] },
      { mode }
    )
    const response = await browser.fetch('/api/hubs/b.1/projects?filter[x]=1&a={|}^')
    t.deepEqual([response.statusCode, response.text()], [200, '{}'])
    const [request] = upstream.requests
    t.is(request?.url, '/project/v1/hubs/b.1/projects?filter[x]=1&a={|}^')
    t.is(request?.method, 'GET')
    t.deepEqual(request?.headers('host'), [`127.0.0.1:${upstream.port}`])
    t.deepEqual(request?.headers('via'), ['1.1 platform-auth-server'])
    const [authorization = ''] = request?.headers('authorization') ?? []
    t.is(request?.headers('authorization').length, 1)
    t.regex(authorization, /^Bearer \S+$/)
    t.true(idp.issued.accessTokens.some(({ value }) => authorization === `Bearer ${value}`))
  })
}
