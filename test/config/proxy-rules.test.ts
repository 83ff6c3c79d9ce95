// The internal token has the wide scope and stays on the server. In dual mode pages also get a public token, which has
// only the public scopes. In single mode there is only one token, and it stays on the server.
import test from 'ava'
import { checkValue } from '#src/config/check-value.js'
import { parseRules, proxyRoutes } from '#src/config/proxy-rules.js'
import { settingOf } from '#src/config/settings.js'
import { load, problemsOf } from './given.js'

const hubs = 'GET /api/hubs/** https://api.example/project/v1/hubs/**'
const issues = 'GET,POST /api/issues/*/issues https://api.example/issues/v1/projects/*/issues'
const backend = 'GET,POST,PUT /backend/** http://backend:3000/** plain-http timeout=120'

test('a rule consists of methods, a path, a target and options', t => {
  const { rules, problems } = parseRules([
    hubs,
    issues,
    backend,
    'GET /viewer/** https://api.example:8443/** token=public'
  ])
  t.deepEqual(problems, [])
  t.deepEqual(rules[0], {
    number: 1,
    text: hubs,
    methods: ['GET'],
    path: { segments: ['api', 'hubs'], hasRest: true },
    targetOrigin: 'https://api.example',
    target: { segments: ['project', 'v1', 'hubs'], hasRest: true },
    token: 'internal',
    timeoutSeconds: undefined
  })
  t.is(rules[2]?.timeoutSeconds, 120)
  t.is(rules[2]?.targetOrigin, 'http://backend:3000')
  t.deepEqual([rules[3]?.token, rules[3]?.targetOrigin], ['public', 'https://api.example:8443'])
})

const usable = [
  'GET /a https://h.example',
  'GET /a https://h.example/',
  'GET /a/ https://h.example/items/',
  'DELETE /a http://127.0.0.1:9000/a',
  'PATCH /a http://localhost/a',
  'PUT /*/x https://h.example/*',
  'GET /api/authors/** https://h.example/**',
  'GET /healthz2 https://h.example/',
  'GET /* https://h.example/*',
  'GET /a%20b/** https://h.example/c%20d/**',
  'GET /a https://[::1]:8443/a timeout=3600 token=internal'
]
for (const rule of usable) {
  test(`the rule ${rule} is accepted`, t => t.deepEqual(parseRules([rule]).problems, []))
}

const unusable: readonly (readonly [rule: string, problem: RegExp])[] = [
  ['GET', /incomplete\. Write METHODS PATH TARGET/],
  ['GET /a', /incomplete/],
  ['FETCH /a https://h.example/a', /"FETCH" is not a method of a rule\. Use GET, POST, PUT, PATCH, DELETE/],
  ['get /a https://h.example/a', /"get" is not a method/],
  ['HEAD /a https://h.example/a', /"HEAD" is not a method .*GET includes HEAD/],
  ['GET, /a https://h.example/a', /"" is not a method/],
  ['GET / https://h.example/', /every path of this server/],
  ['GET /** https://h.example/**', /every path of this server/],
  ['GET a https://h.example/a', /does not begin with a slash/],
  ['GET /a* https://h.example/a', /inside a segment/],
  ['GET /a/**/b https://h.example/a', /inside a segment/],
  ['GET /a//b https://h.example/a', /empty segment/],
  ['GET /a/../b https://h.example/a', /dot segment/],
  ['GET /a?x=1 https://h.example/a', /query/],
  ['GET /ä https://h.example/a', /percent-encoded/],
  ['GET /api/auth https://h.example/a', /belongs to this server itself\. Use a path outside \/api\/auth/],
  ['GET /api/auth/** https://h.example/**', /belongs to this server itself/],
  ['GET /api/auth/token https://h.example/a', /belongs to this server itself/],
  ['GET /healthz https://h.example/a', /belongs to this server itself/],
  ['GET /readyz/** https://h.example/**', /belongs to this server itself/],
  ['GET /a/* https://h.example/a', /wildcards .* do not correspond/],
  ['GET /a https://h.example/*', /wildcards .* do not correspond/],
  ['GET /a/** https://h.example/a', /wildcards .* do not correspond/],
  ['GET /a/*/** https://h.example/**', /wildcards .* do not correspond/],
  ['GET /a https://h.example/a?b=c', /query or a fragment/],
  ['GET /a https://h.example/a#b', /query or a fragment/],
  ['GET /a https://h.example//a', /empty segment/],
  ['GET /a https://h.example/../a', /dot segment/],
  ['GET /a https://*.example/a', /not a URL/],
  ['GET /a ftp://h.example/a', /not a URL/],
  ['GET /a /b', /not a URL/],
  ['GET /a https://h.example\\a', /does not begin with a slash/],
  ['GET /a http://h.example/a', /plain http .*Use https, or the option plain-http\./],
  ['GET /a https://h.example/a token=refresh', /"token=refresh" is not an option\. Use token=internal/],
  ['GET /a https://h.example/a timeout=0', /out of range\. Use 1 to 3600/],
  ['GET /a https://h.example/a timeout=3601', /out of range/],
  ['GET /a https://h.example/a timeout=1s', /not an option/],
  ['GET /a https://h.example/a timeout=1 timeout=2', /given twice/],
  ['GET /a https://h.example/a retry', /"retry" is not an option/]
]
for (const [rule, problem] of unusable) {
  test(`the rule ${rule} is refused`, t => {
    const { problems } = parseRules([rule])
    t.true(problems.length > 0)
    t.regex(problems[0] ?? '', problem)
    t.true(
      problems.every(problem => problem.startsWith(`cannot contain the rule ${JSON.stringify(rule)}, because `)),
      problems[0]
    )
    t.true(
      problems.every(problem => /\. [A-Z].*\.$/.test(problem)),
      problems.join('\n')
    )
  })
}

test('a target with user information is refused, and its password is not printed', async t => {
  const rule = 'GET /a https://user:pa55word@h.example/a'
  const { problems } = parseRules([rule])
  t.regex(problems[0] ?? '', /user information/)
  t.notRegex(problems.join(), /pa55word/)
  const refused = checkValue('proxy.routes', [rule])
  t.notRegex(JSON.stringify(refused), /pa55word/)
})

test('a rule is refused if earlier rules match all its requests, but not if they match only some', t => {
  const hidden: readonly (readonly string[])[] = [
    ['GET /a/** https://h.example/**', 'GET /a/b https://h.example/b'],
    ['GET /a/* https://h.example/*', 'GET /a/b https://h.example/b'],
    ['GET /a https://h.example/b', 'GET /a https://h.example/c'],
    ['GET /a/** https://h.example/**', 'GET /a/*/c/** https://h.example/*/**'],
    ['GET /a https://h.example/b', 'POST /a https://h.example/b', 'GET,POST /a https://h.example/c']
  ]
  for (const rules of hidden)
    t.regex(parseRules(rules).problems.join(), /because earlier rules match all of its requests/, rules.join(' | '))
  const partly: readonly (readonly string[])[] = [
    ['GET /a/** https://h.example/**', 'GET,POST /a/b https://h.example/b'],
    ['GET /a/b https://h.example/b', 'GET /a/** https://h.example/**'],
    ['GET /a/* https://h.example/*', 'GET /a/** https://h.example/**'],
    ['GET /a/* https://h.example/*', 'GET /a/ https://h.example/']
  ]
  for (const rules of partly) t.deepEqual(parseRules(rules).problems, [], rules.join(' | '))
})

test('the rules in a variable may be on one line or on several', t => {
  const rules = [hubs, issues, backend]
  t.deepEqual(proxyRoutes.fromString?.(rules.join(' ')), rules)
  t.deepEqual(proxyRoutes.fromString?.(`\n  ${rules.join('\r\n\t ')}\n`), rules)
  t.deepEqual(proxyRoutes.fromString?.(''), [])
  t.deepEqual(proxyRoutes.fromString?.('get /a https://h.example/a'), ['get /a https://h.example/a'])
})

test('rules can be given in a variable, on several lines in .env, with repeated flags and in a file', async t => {
  const routes = [hubs, issues]
  const textsOf = ({ config }: Awaited<ReturnType<typeof load>>) => config.proxy.routes.map(({ text }) => text)
  const variable = await load(t, { env: { PLATFORM_AUTH_PROXY_ROUTES: routes.join(' ') } })
  t.deepEqual(textsOf(variable), routes)
  const dotEnv = await load(t, { files: { '.env': `PLATFORM_AUTH_PROXY_ROUTES="\n${routes.join('\n')}\n"\n` } })
  t.deepEqual(textsOf(dotEnv), routes)
  const flags = await load(t, { flags: { 'proxy.routes': [hubs, issues] } })
  t.deepEqual(textsOf(flags), routes)
  const yaml = `proxy:\n  routes:\n    # what users may see\n    - ${hubs}\n    - ${issues}\n`
  t.deepEqual(textsOf(await load(t, { files: { 'platform-auth-server.config.yaml': yaml } })), routes)
  t.deepEqual((await load(t)).config.proxy.routes, [])
})

test('all unusable rules are reported together', async t => {
  const rules = ['FETCH /a https://h.example/a', 'GET /api/auth/x ftp://h.example', hubs, hubs]
  const problems = await problemsOf(t, { env: { PLATFORM_AUTH_PROXY_ROUTES: rules.join('\n') } })
  t.deepEqual(
    problems.map(({ key, source }) => [key, source]),
    problems.map(() => ['proxy.routes', 'variable PLATFORM_AUTH_PROXY_ROUTES'])
  )
  t.is(problems.length, 4)
})

test('a rule with token=public requires dual mode', async t => {
  const env = { PLATFORM_AUTH_PROXY_ROUTES: `${hubs} token=public` }
  const [problem] = await problemsOf(t, { env })
  t.regex(problem?.message ?? '', /uses the public token, but mode is single\. Use token=internal\.$/)
  t.truthy((await load(t, { env: { ...env, PLATFORM_AUTH_MODE: 'dual' } })).config)
})

test('proxy rules on a plain http site get a warning unless proxy.csrfHeader replaces Fetch Metadata', async t => {
  const env = {
    PLATFORM_CALLBACK_URL: 'http://app.example/api/auth/callback',
    PLATFORM_AUTH_PROXY_ROUTES: hubs
  }
  const ours = ({ warnings }: Awaited<ReturnType<typeof load>>) => warnings.filter(({ key }) => key === 'proxy.routes')
  t.is(ours(await load(t, { env })).length, 1)
  t.is(ours(await load(t, { env: { ...env, PLATFORM_AUTH_PROXY_CSRF_HEADER: 'X-CSRF' } })).length, 0)
  for (const origin of ['https://app.example', 'http://localhost:8080', 'http://app.localhost']) {
    const PLATFORM_CALLBACK_URL = `${origin}/api/auth/callback`
    t.is(ours(await load(t, { env: { ...env, PLATFORM_CALLBACK_URL } })).length, 0, origin)
  }
})

test('headers that the proxy must not forward are refused', t => {
  const request =
    'Cookie Authorization Host Origin Referer Forwarded X-Forwarded-For x-user-id Expect Connection TE Upgrade'
  for (const name of [...request.split(' '), 'Transfer-Encoding', 'Content-Length', 'Sec-Fetch-Site', 'a b', 'a:b']) {
    t.true('rejected' in checkValue('proxy.requestHeaders', [name]), name)
  }
  const answer =
    'Set-Cookie Access-Control-Allow-Origin Content-Security-Policy Connection Transfer-Encoding X-Accel-Redirect'
  for (const name of [
    ...answer.split(' '),
    'Speculation-Rules',
    'X-Sendfile',
    'Cross-Origin-Opener-Policy',
    'Clear-Site-Data'
  ]) {
    t.true('rejected' in checkValue('proxy.responseHeaders', [name]), name)
  }
  t.deepEqual(checkValue('proxy.requestHeaders', 'x-ads-region X-Tenant'), { value: ['x-ads-region', 'X-Tenant'] })
  t.deepEqual(checkValue('proxy.responseHeaders', 'X-Total-Count'), { value: ['X-Total-Count'] })
  for (const name of ['Accept', 'Content-Type', 'Cookie', 'Origin', 'Sec-Fetch-Site', 'User-Agent', '']) {
    t.true('rejected' in checkValue('proxy.csrfHeader', name), name)
  }
  t.deepEqual(checkValue('proxy.csrfHeader', 'X-CSRF'), { value: 'X-CSRF' })
  t.deepEqual(settingOf('proxy.requestHeaders').default, ['x-ads-region', 'region'])
})
