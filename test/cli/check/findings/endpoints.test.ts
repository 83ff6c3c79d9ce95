import test, { type ExecutionContext } from 'ava'
import { endpoints } from '#src/cli/check/findings/endpoints.js'
import { openProvider } from '#src/cli/check/provider.js'
import type { Config } from '#src/config/settings.js'
import { type DeepPartial, testConfig } from '../../../helpers/config.js'
import { createHostileIdp, faults, type HostileIdp } from '../../../helpers/hostile-idp/index.js'
import { check, checkAt, discovering, someProvider } from '../checked.js'

test('check reports that the endpoints come from the settings', async t => {
  t.is((await checkAt(t)).line('endpoints'), 'ok endpoints The endpoints come from the settings.')
})

/** Returns the findings for these settings. Without an issuer no request is sent. */
async function configured(t: ExecutionContext, platform: DeepPartial<Config['platform']>) {
  const provider = openProvider(testConfig(someProvider, { platform }), Date.now)
  t.teardown(() => provider.transport.close())
  return endpoints(provider)
}

test('check reports that the built-in endpoints are used', async t => {
  const none = { authorizationEndpoint: undefined, tokenEndpoint: undefined, userinfoEndpoint: undefined }
  t.deepEqual(await configured(t, none), [
    { check: 'endpoints', status: 'ok', message: 'The endpoints are those of Autodesk Platform Services.' }
  ])
})

test('check fails for endpoints of two different providers', async t => {
  t.deepEqual(await configured(t, { tokenEndpoint: undefined, userinfoEndpoint: undefined }), [
    {
      check: 'endpoints',
      status: 'failed',
      message:
        'The settings contain platform.authorizationEndpoint, but Autodesk Platform Services is still used for platform.tokenEndpoint, platform.userinfoEndpoint.',
      next: 'Set all three addresses for one provider, or set platform.issuer.'
    }
  ])
})

interface Discovery {
  readonly prepare?: (idp: HostileIdp) => void
  readonly env?: (idp: HostileIdp) => Record<string, string>
}

async function discovered(t: ExecutionContext, { prepare = () => {}, env = () => ({}) }: Discovery) {
  const idp = await createHostileIdp(t)
  prepare(idp)
  return { idp, ...(await check(t, [], { env: { ...discovering(idp), ...env(idp) } })) }
}

test('check accepts a discovery document that contains all endpoints', async t => {
  const { line, idp, code } = await discovered(t, {})
  t.is(line('endpoints'), `ok endpoints The discovery document of ${idp.issuer} contains the endpoints.`)
  t.regex(line('client') ?? '', /^ok /)
  t.is(code, 0)
})

test('check warns about an endpoint in the settings that differs from the discovered one', async t => {
  const { lines, idp } = await discovered(t, {
    env: idp => ({
      PLATFORM_TOKEN_ENDPOINT: `${idp.issuer}/token?v=2`,
      PLATFORM_USERINFO_ENDPOINT: idp.userinfoEndpoint
    })
  })
  t.deepEqual(
    lines.filter(line => line.includes(' endpoints ')),
    [
      `ok endpoints The discovery document of ${idp.issuer} contains the endpoints.`,
      `warning endpoints platform.tokenEndpoint is ${idp.issuer}/token?v=2, but the discovery document has ${idp.tokenEndpoint}. Next: Remove platform.tokenEndpoint from the settings, unless the difference is intended.`
    ]
  )
})

test('check accepts an endpoint in the settings that is missing from the discovery document', async t => {
  const { line, idp } = await discovered(t, {
    prepare: idp => {
      idp.discovery = document => ({ ...document, userinfo_endpoint: undefined })
    },
    env: idp => ({ PLATFORM_USERINFO_ENDPOINT: idp.userinfoEndpoint })
  })
  t.is(line('endpoints'), `ok endpoints The discovery document of ${idp.issuer} contains the endpoints.`)
})

const compare = "Next: Compare platform.issuer with the provider's documentation."

const unusable: readonly (readonly [what: string, situation: Discovery, line: string])[] = [
  [
    'a document with another issuer',
    {
      prepare: idp => {
        idp.discovery = document => ({ ...document, issuer: 'https://other.example' })
      }
    },
    `failed endpoints The discovery document is unusable: its issuer is "https://other.example", but "ISSUER" is configured. ${compare}`
  ],
  [
    'a document without a token endpoint',
    {
      prepare: idp => {
        idp.discovery = document => ({ ...document, token_endpoint: undefined })
      }
    },
    `failed endpoints The discovery document is unusable: it has no token_endpoint. ${compare}`
  ],
  [
    'no document',
    {
      prepare: idp => {
        idp.discovery = undefined
      }
    },
    `failed endpoints The discovery document answers 404, so there is no such endpoint at ISSUER/.well-known/openid-configuration. ${compare}`
  ],
  [
    'an HTML page instead of the document',
    { prepare: idp => idp.fail('discovery', faults.html(200)) },
    `failed endpoints The discovery document is unusable: the response is not a JSON object. ${compare}`
  ],
  [
    'a closed port',
    { env: () => ({ PLATFORM_ISSUER: 'http://127.0.0.1:1' }) },
    'failed endpoints The discovery document cannot be reached: 127.0.0.1:1 refuses connections (ECONNREFUSED). Next: Check host and port in platform.issuer. If they are right, no server listens there or a firewall rejects the connection.'
  ]
]

for (const [what, situation, expected] of unusable) {
  test(`if check cannot find the endpoints, it sends no further request to the provider (${what})`, async t => {
    const { line, idp, code } = await discovered(t, situation)
    t.is(line('endpoints'), expected.replace('ISSUER', idp.issuer))
    for (const other of ['login', 'client', 'userinfo', 'logout']) t.is(line(other), undefined)
    t.is(idp.tokenRequests.length, 0)
    t.is(code, 1)
  })
}
