import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import os from 'node:os'
import test from 'ava'
import { runCommand } from '../helpers/run-command.js'
import { logIn, refresh, start, userInfo } from './setup.js'

test("the discovery document lists the demo's own endpoints and the features that the demo supports", async t => {
  const demo = await start(t)
  const response = await fetch(`${demo.issuer}/.well-known/openid-configuration`)
  const metadata = (await response.json()) as Record<string, unknown>
  t.like(metadata, {
    issuer: demo.issuer,
    authorization_endpoint: `${demo.issuer}/authentication/v2/authorize`,
    token_endpoint: `${demo.issuer}/authentication/v2/token`,
    revocation_endpoint: `${demo.issuer}/authentication/v2/revoke`,
    end_session_endpoint: `${demo.issuer}/authentication/v2/logout`,
    userinfo_endpoint: `${demo.issuer}/userinfo`,
    jwks_uri: `${demo.issuer}/authentication/v2/keys`,
    code_challenge_methods_supported: ['S256'],
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post']
  })
  const endpoints = Object.keys(metadata).filter(key => /_(endpoint|uri)$/.test(key))
  t.is(endpoints.length, 6, endpoints.join())
})

test('the demo listens only on 127.0.0.1', async t => {
  const demo = await start(t)
  const others = Object.values(os.networkInterfaces())
    .flatMap(addresses => addresses ?? [])
    .map(({ address, scopeid }) => (scopeid ? `${address}%${scopeid}` : address))
    .filter(address => address !== '127.0.0.1')
  for (const host of new Set(['::1', ...others]))
    await t.throwsAsync(once(net.connect({ host, port: demo.port }), 'connect'), undefined, host)
})

test('the demo responds with 403 to a page of another host that lets its name resolve to 127.0.0.1', async t => {
  const demo = await start(t)
  const statusFor = async (host: string) => {
    const request = http.get(`${demo.issuer}/.well-known/openid-configuration`, { headers: { host } })
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    response.resume()
    return response.statusCode
  }
  t.is(await statusFor(`evil.example:${demo.port}`), 403)
  t.is(await statusFor(`localhost:${demo.port}`), 200)
})

test('an unexpected error inside the demo gets 500 and is logged', async t => {
  let isBroken = false
  const faults: unknown[] = []
  const demo = await start(t, {
    now() {
      if (isBroken) throw new Error('the clock is broken')
      return Date.now()
    },
    log: { error: ({ err }, message) => faults.push(`${message}: ${err}`) }
  })
  const tokens = await logIn(t, demo)
  isBroken = true
  t.is((await userInfo(demo, tokens.access_token)).status, 500)
  t.like(await refresh(demo, tokens.refresh_token), { status: 500, body: { error: 'server_error' } })
  t.deepEqual(faults, Array(2).fill('the demo identity provider failed: Error: the clock is broken'))
})

// oidc-provider prints a notice when a function that has only its default is first called, and one at import on Node
// releases that it does not support. The test runs in a separate process because each notice is printed only once.
test('a program that starts a demo prints nothing during a whole session', async t => {
  const script = `
    const { startDemo } = await import(${JSON.stringify(import.meta.resolve('#src/demo/index.js'))})
    const { createBrowser } = await import(${JSON.stringify(import.meta.resolve('../helpers/browser.js'))})
    const demoSetup = await import(${JSON.stringify(import.meta.resolve('./setup.js'))})
    const { basic, callbackUrl, codeFor, exchangeCode, refresh, revoke } = demoSetup
    const t = { teardown() {} }
    const demo = await startDemo({ callbackUrl })
    const browser = createBrowser(t, { origin: demo.issuer })
    const code = await codeFor(t, demo, { scope: 'openid data:read' }, browser)
    const first = await exchangeCode(demo, code)
    const second = await refresh(demo, first.body.refresh_token)
    const path = '/authentication/v2'
    const form = { grant_type: 'refresh_token', refresh_token: second.body.refresh_token }
    const headers = { origin: 'http://elsewhere.example', authorization: basic(demo.clientId, demo.clientSecret) }
    const answers = [
      second,
      await browser.navigate(path + '/logout'),
      await revoke(demo, second.body.refresh_token),
      await browser.request('POST', path + '/token', { form, headers }),
      await browser.navigate(path + '/logout/success'),
      await browser.navigate(path + '/authorize?client_id=unknown')
    ]
    const statuses = answers.map(({ status, statusCode }) => statusCode ?? status).join()
    if (statuses !== '200,200,200,400,200,400') throw new Error(statuses)
    await demo.close()`
  const result = await runCommand([process.execPath, '--input-type=module', '--eval', script])
  t.deepEqual(result, { status: 0, stdout: '', stderr: '' })
})
