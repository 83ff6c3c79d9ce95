// Nobody needs a session to send a long path, so no path may occupy the process, at the public port or at that of forward-auth.
import test from 'ava'
import fc from 'fast-check'
import { filePatterns, isProtectedPath } from '#src/config/types/protected-files.js'
import { parseRules } from '#src/config/types/proxy-rules.js'
import { whyNotFromGateway } from '#src/web/forward-auth/forward-auth.js'
import { createRoutes } from '#src/web/proxy/routes.js'
import { pathBelowRoot } from '#src/web/static/find-file.js'
import { cpuMsOf } from '../helpers/cpu-time.js'
import { words } from '../helpers/words.js'

const { rules } = parseRules([
  'GET /k/open/** https://a.example/open/** token=public',
  'GET /up/*/x/** https://a.example/u/*/x/** encoded-slashes',
  'GET /up/** https://a.example/** no-links',
  'GET /k/** https://a.example/k/**',
  'GET /k%C3%A9/a%20b/** https://b.example/**'
])
const findRoute = createRoutes(rules, 'https://app.example')
const parsed = filePatterns.parse('!/up/x /up/** /k')
const patterns = 'value' in parsed ? parsed.value : []

function findFile(path: string) {
  try {
    const below = pathBelowRoot(path)
    return below !== undefined && isProtectedPath(below, patterns)
  } catch {
    return undefined
  }
}

/** What a process does with a path before it knows whether there is a session, and the longest path: the limit for headers. */
const uses = [
  ['API proxy', 32_000, findRoute.bind(undefined, 'GET')],
  ['static files', 32_000, findFile],
  [
    'forward-auth',
    64_000,
    (uri: string) => whyNotFromGateway({ url: '/auth', headersDistinct: { 'x-original-uri': [uri] } })
  ],
  [
    'own path of forward-auth',
    64_000,
    (url: string) => whyNotFromGateway({ url, headersDistinct: { 'x-forwarded-uri': ['/a'] } })
  ]
] as const

const bytesOf = (text: string) => [...Buffer.from(text)]
const escaped = (text: string) =>
  bytesOf(text)
    .map(byte => `%${byte.toString(16).padStart(2, '0')}`)
    .join('')
const spellings: readonly ((text: string) => string)[] = [
  text => Buffer.from(text).toString('latin1'),
  escaped,
  text => escaped(text).replaceAll('%', '%25'),
  text => escaped(text).replaceAll('%', '%2525'),
  text => escaped(text).replaceAll('%', '%252525')
]
const marks = [
  ...['\u0301', '\u0327\u0301', '\u0f71\u0f72', '\uff9e', '\u0344', '\u{1d165}\u{1d16e}'],
  ...[`a${'\u0323\u0301'.repeat(15)}`, `${'\u0301'.repeat(30)}/`]
]
const compatible = [...'\ufdfa\u2105\u2026\uff0f\uff0e\uff05\uff21\ufb01\u00bd\u{1d160}\u2215', '\u1e9b\u0323']
const signs = ['. ', '\0', '\u0080', ...words`/ /. /.. /a/.. // . /a /.a ; /; /a; ? # % \ a /%2e %2541`]
const starts = ['/', '/k/', '/up/', '/up/a/x/', '/up/%25252541', '/k%C3%A9/a%20b', '/x/%25252541']

const piece = fc
  .tuple(fc.constantFrom(...marks, ...marks, ...compatible, ...signs), fc.constantFrom(...spellings))
  .map(([text, spell]) => spell(text))
const longPath = fc
  .tuple(
    fc.constantFrom(...starts),
    fc.array(piece, { minLength: 1, maxLength: 3 }),
    fc.constantFrom(600, 2000, 4090, 9000, 64_000)
  )
  .map(([start, pieces, length]) => (start + pieces.join('').repeat(length)).slice(0, length))

const MAX_MS = 5

test('a short path with many readings costs at most 5 ms of CPU, also with many rules of different rights', t => {
  const options = ['', ' token=public', ' no-links']
  const texts = Array.from(
    { length: 60 },
    (_, n) => `GET /k/v${n}/items/*/x/** https://a.example/v${n}/*/**${options[n % 3]}`
  )
  const find = createRoutes(parseRules([...texts, 'GET /k/** https://a.example/**']).rules, 'https://app.example')
  for (const path of [
    'v1%EF%BC%9B%2523/x/%3Bb.%3Bb%3Bb%253Bc%253Bc%20%EF%BC%9B;a%41items%2523%253Bc%2F%3F/x/%3Bb%2Fx%253Bc%2523i.%3F%23%C3%A9',
    ';a%3Fitems/%2523%C3%A9%2F%2523%EF%BC%9B/%253Bcv1;a%2F/x/%EF%BC%9B%253Bc;a/x/%2523;a%23xxx%3Bb/x/%2F/%3F',
    'x/'.repeat(15_000)
  ]) {
    let ms = Number.POSITIVE_INFINITY
    // The proxy remembers short paths, so each one is new.
    for (let run = 0; run < 300 && ms > MAX_MS; run++) {
      ms = Math.min(
        ms,
        cpuMsOf(() => t.is(find('GET', `/k/${path}${run}`)?.kind, 'forward'))
      )
    }
    t.true(ms <= MAX_MS, `${path.slice(0, 50)}: ${ms} ms`)
  }
})

test('every path costs at most 5 ms of CPU, without a session, at both ports', t => {
  const worst = { ms: 0, what: '' }
  fc.assert(
    fc.property(longPath, path => {
      for (const [what, longest, use] of uses) {
        const given = path.slice(0, longest)
        // The first runs include the compilation of the code. The proxy remembers no long path.
        let ms = Number.POSITIVE_INFINITY
        for (let run = 0; run < 3 || (run < 100 && ms > MAX_MS); run++)
          ms = Math.min(
            ms,
            cpuMsOf(() => use(given))
          )
        const described = `${what}: ${JSON.stringify(given.slice(0, 50))}, ${given.length} characters`
        if (ms > worst.ms) Object.assign(worst, { ms, what: described })
        if (ms > MAX_MS) throw new Error(`${described}: ${ms} ms`)
      }
    }),
    {
      examples: [['/..'], ['/a'], ['/a/..']].map(([piece]) => [`/x${piece?.repeat(16_000)}`] as [string]),
      numRuns: Number(process.env.FUZZ_RUNS ?? 300),
      seed: Number(process.env.FUZZ_SEED ?? 1),
      endOnFailure: true
    }
  )
  t.log(worst)
  t.pass()
})
