// The internal token has the wide scope and stays on the server. In dual mode pages also get a public token, which has
// only the public scopes. In single mode there is only one token, and it stays on the server.
import test from 'ava'
import { parseRules, proxyRules } from '#src/config/types/proxy-rules.js'
import { assertCases } from '../helpers/case-file.js'
import { load, type Situation } from './given.js'

const hubs = 'GET /api/hubs/** https://api.example/project/v1/hubs/**'
const issues = 'GET,POST /api/issues/*/issues https://api.example/issues/v1/projects/*/issues'
const backend = 'GET,POST,PUT /backend/** http://backend:3000/** plain-http timeout=2m'

test('a rule consists of methods, a path, a target and options', t => {
  const { rules, problems } = parseRules([
    hubs,
    issues,
    backend,
    'GET /viewer/** https://api.example:8443/** token=public no-links'
  ])
  t.deepEqual(problems, [])
  t.deepEqual(rules[0], {
    route: '/api/hubs/**',
    text: hubs,
    methods: ['GET'],
    path: { segments: ['api', 'hubs'], hasRest: true },
    targetOrigin: 'https://api.example',
    target: { segments: ['project', 'v1', 'hubs'], hasRest: true },
    token: 'internal',
    timeoutSeconds: undefined,
    encodedSlashes: false,
    acceptsLinks: true
  })
  t.is(rules[2]?.timeoutSeconds, 120)
  t.is(rules[2]?.targetOrigin, 'http://backend:3000')
  t.deepEqual([rules[3]?.token, rules[3]?.targetOrigin], ['public', 'https://api.example:8443'])
  t.false(rules[3]?.acceptsLinks)
})

test('an empty variable leaves the rules of the settings file in use', async t => {
  const files = { 'platform-auth-server.config.yaml': `apiProxy: { rules: ['${hubs}'] }` }
  const { config } = await load(t, { env: { PLATFORM_AUTH_API_PROXY_RULES: ' ' }, files })
  t.is(config.apiProxy.rules.length, 1)
})

test('a rule is accepted, or refused with advice', t =>
  assertCases(t, 'test/config/proxy-rules.txt', text => {
    const problems = parseRules(text.split(' ; ')).problems.join(' ')
    t.notRegex(problems, /hunter/)
    return problems || 'accepted'
  }))

test('the rules in a variable may be on one line or on several', t => {
  const rules = [hubs, issues, backend]
  t.deepEqual(proxyRules.fromString?.(rules.join(' ')), rules)
  t.deepEqual(proxyRules.fromString?.(`\n  ${rules.join('\r\n\t ')}\n`), rules)
  t.deepEqual(proxyRules.fromString?.(''), [])
  t.deepEqual(proxyRules.fromString?.('get /a https://h.example/a'), ['get /a https://h.example/a'])
})

const routes = [hubs, issues]
const sources: readonly (readonly [where: string, situation: Situation])[] = [
  ['in a variable', { env: { PLATFORM_AUTH_API_PROXY_RULES: routes.join(' ') } }],
  ['on several lines in .env', { files: { '.env': `PLATFORM_AUTH_API_PROXY_RULES="\n${routes.join('\n')}\n"\n` } }],
  ['with repeated flags', { flags: { 'apiProxy.rules': routes } }],
  [
    'in a settings file',
    {
      files: {
        '.platform-auth-serverrc': `apiProxy:\n  rules:\n    # what users may see\n    - ${hubs}\n    - ${issues}\n`
      }
    }
  ]
]

for (const [where, situation] of sources) {
  test(`rules can be given ${where}`, async t => {
    const { config } = await load(t, situation)
    const texts = config.apiProxy.rules.map(({ text }) => text)
    t.deepEqual(texts, routes)
  })
}
