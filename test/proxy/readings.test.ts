// Which paths the proxy forwards although they have several readings: encoded slashes, path parameters, compatibility
// characters, and escapes that are encoded again.
import test from 'ava'
import fc from 'fast-check'
import { parseRules } from '#src/config/types/proxy-rules.js'
import { createRoutes } from '#src/web/proxy/routes.js'
import { words } from '../helpers/words.js'

function finder(...rules: readonly string[]) {
  const { rules: parsed, problems } = parseRules(rules)
  if (problems.length > 0) throw new Error(problems.join())
  const find = createRoutes(parsed, 'https://app.example')
  return (target: string, method = 'GET') => {
    const route = find(method, target)
    return route?.kind === 'forward' ? route.target : route?.kind
  }
}

const U = 'dXJuOmFkc2sub2JqZWN0cw'
const any = finder('GET,POST /p/** https://api.example/**')

// Requests of the platform's viewer and SDKs. The upstream gets them byte for byte.
const forwarded = [
  `/derivativeservice/v2/derivatives/urn%3Aadsk.viewing%3Afs.file%3A${U}%2Foutput%2FResource%2F3D%20View%2F%7B3D%7D%20960621%2F%7B3D%7D.svf?domain=http%3A%2F%2Flocalhost%3A8080`,
  `/modelderivative/v2/designdata/${U}/manifest/urn%3Aadsk.viewing%3Afs.file%3A${U}%2Foutput%2F3D%2520View%2F%257B3D%257D.svf/signedcookies`,
  `/modelderivative/v2/designdata/${U}/metadata/5f1c/properties:query`,
  '/oss/v2/buckets/b/objects/folder%2Fsub%20file%2B1.rvt/signeds3upload?parts=2&firstPart=1',
  '/oss/v2/buckets/b/objects/%E5%B9%B3%E9%9D%A2%E5%9B%B3%EF%BC%8F%E6%96%AD%E9%9D%A2%E5%9B%B3.rvt/details',
  '/data/v1/projects/b.1/versions/urn%3Aadsk.wipprod%3Afs.file%3Avf.abc%3Fversion%3D2',
  '/objects/%2fkey%2F',
  '/objects/a%252Fb%25252Fc',
  '/objects/a;b=c/d%3Be',
  '/objects/100%EF%BC%85',
  '/objects/%E2%84%85%E2%80%A6%E2%91%A0%EF%BC%8F%E2%81%84',
  '/objects/...%2F....%2F.x',
  '/objects/%FCber%2F%A0',
  '/objects/1%E2%81%842%E2%88%953%E2%A7%B54.5',
  `/objects/x${'%CC%81'.repeat(30)}y${'%CC%81'.repeat(30)}`
]
for (const target of forwarded) {
  test(`/p${target} is forwarded unchanged`, t => t.is(any(`/p${target}`), target))
}

test('two slashes at the beginning of the path become one', t => {
  const target = '/data/v1/projects/b.1/folders/urn%3Aadsk.wipprod%3Afs.folder%3Aco.x/contents'
  t.is(any(`//p${target}`), target)
  t.is(any(`///p/a%2F%2Fb`), '/a%2F%2Fb')
})

const unsafe = [
  ['a dot segment', 'open%2F..%2Fsecret open%2F%2e%2e a%2F.%2Fb a%2F%2e;x%2Fb a/..%3Bx a/..%3Fx ..%2F .%2Fa'],
  ['a dot segment that is encoded again', 'a%252F%252e%252e%252Fb a%2F%25252e%25252e a%2F%252e%2e%3bx'],
  ['a dot segment of full-width characters', 'a%EF%BC%8F%EF%BC%8E%EF%BC%8E%EF%BC%8Fb a%2F%E2%80%A5%2Fb %EF%BC%8E%2Fb'],
  ['a dot segment of full-width escapes', '%EF%BC%852e%EF%BC%852e a/%EF%BC%85%EF%BC%92e/b %25%EF%BC%92e%25%EF%BC%92e'],
  ['a full-width percent sign before two digits', '%EF%BC%8520 100%EF%BC%8541 %EF%B9%AA0a'],
  ['bytes that some decoders drop', 'a%2F..%FF%2Fb a%2F.%E2%80%8B.%2Fb a%2F..%C2%A0 a%2F..%20%2Fb a%2F..%A0%2Fb'],
  [
    'a dot segment between characters that look like slashes',
    '..%E2%88%95..%E2%88%95etc ..%E2%81%84x x%E2%A7%B8.. a/..%E2%88%96b %252e%252e%25E2%2588%2595x a%E2%A7%B5.%20%E2%A7%B5b a%E2%A7%B9..%E2%95%B1b'
  ],
  [
    'more than 30 combining marks in a row',
    `x${'%CC%81'.repeat(31)} x${'%25CC%2581'.repeat(31)} ${'%EF%BE%9E'.repeat(31)}`
  ],
  ['an encoded backslash', 'a%5Cb a%5cb a%255Cb a%25255Cb a%EF%BC%BCb a%2F..%5Cb'],
  ['an encoded control character', '%00 %2500 %250a a%0Db %25257F a%2Fb%09'],
  ['an overlong sequence', 'a%C0%AFb a%25C0%25AFb a%2F%C0%AE%C0%AE'],
  ['a broken escape', 'a%2Fb%2 %zz a%2Fb%'],
  ['a fourth encoding', '%2525252F %252525252e %25252525'],
  ['an empty segment', 'a//b a%2Fb// /a%2Fb'],
  [
    'too many readings',
    ';a/%3Bb/%253Bc/%EF%BC%9Be/%25EF%25BC%259Bf/%2525EF%2525BC%25259Bg%3F%23%253F%2523%25253F%252523%EF%BC%9F%EF%BC%83'
  ]
] as const
for (const [what, paths] of unsafe) {
  test(`a path with ${what} is never forwarded`, t => {
    for (const path of paths.split(' ')) t.is(any(`/p/${path}`), 'inexact', path)
  })
}

test('a path cannot belong to one rule for the proxy and to another one for the upstream', t => {
  const find = finder(
    'GET /a/b/** https://api.example/a/b/** token=public',
    'GET /a/c https://api.example/c token=public',
    'GET /a/** https://api.example/a/**',
    'POST /a/** https://api.example/a/**'
  )
  const inexact = words`
    /a/b%2Fc /a/%62/c /a/%2562/c /a/%2Fb/c /a/%2F%2Fb%2Fc /a/b;x/c /a/b%3Bx/c /a/b%3Fx /a/b%23/c /a/%25%36%32/c
    /a/%EF%BD%82/c /a/b%EF%BC%8Fc /a/b%EF%BC%9Bx/c /a/c%3Fd /a/;x/b/c /a/b;x%2Fy/c /a/%63 /a/c;x /a/c%2523x /a/%2Fc`
  for (const path of inexact) t.is(find(path), 'inexact', path)
  t.is(find('/a/b%2Fc', 'POST'), '/a/b%2Fc')
  for (const path of words`/a/d%2Fc /a/d;x/c /a/bb%2Fc /a/c%2Fd /a/b/c%2Fd /a/b/c;x%3Fd`) t.is(find(path), path)
})

// ASP.NET Core and Spring, for example, decode the segments of a path, but keep their encoded slashes.
test('a path cannot belong to another rule for an upstream that decodes each segment by itself', t => {
  const find = finder(
    'GET /p/*/d/** https://api.example/p/*/d/** token=public',
    'GET /p/** https://api.example/p/**',
    'GET /a/b-c/* https://api.example/a/b-c/* token=public',
    'GET /a/b/d https://api.example/a/b/d token=public',
    'GET /a/** https://api.example/a/**'
  )
  const inexact = words`
    /p/x%2Fy/%64/z /p/x%252Fy/%64/z /a/b%2Dc/x%2Fy /a/b%252Dc/x%252Fy /a/b%3Bx%2Fc/d /p/x%EF%BC%8Fy/%64/z /a/b;x%2Fc/d`
  for (const path of inexact) t.is(find(path), 'inexact', path)
  for (const path of ['/p/a%2Fb', '/p/x%2Fy/e/z', '/a/b%2Fe', '/a/b-e%2Fx']) t.is(find(path), path)
})

test('a long path is forwarded, unless it has too many readings', t => {
  const find = finder('GET /a/** https://api.example/a/**')
  t.is(find(`/a/${'folder%20name%2F'.repeat(250)}`), `/a/${'folder%20name%2F'.repeat(250)}`)
  t.is(find(`/a/${'name/'.repeat(6000)}`), `/a/${'name/'.repeat(6000)}`)
  t.is(find(`/a/${'folder%20name%2F'.repeat(1000)}`), 'inexact')
})

// A router may ignore letter case, Windows ignores spaces and dots at the end of a name, and some decoders drop bytes.
test('a path cannot belong to another rule with other rights for an upstream that compares names loosely', t => {
  const other = 'GET /k/** https://api.example/k/**'
  const spellings = words`
    /k/OPEN/x /k/open%20/x /k/%20open/x /k/open./x /k/open%ff/x /k/oPen%2E%20./x /k/open%E2%80%8B/x /k/%EF%BC%AFpen/x
    /k/Open;y/x /k/open%2520/x /k/%4Fpen /k/%20/open/x /k/%ff/open/x /k/OPEN%2Fx /k/op%C5%BFen/../x /k/OPEN /k/Open%3Fx`
  for (const open of [
    'GET /k/open/** https://api.example/k/open/** token=public',
    'GET /k/open/** https://api.example/k/open/** no-links',
    'GET,POST /k/open/** https://api.example/k/open/**'
  ]) {
    const find = finder(open, other)
    for (const path of spellings) t.is(find(path), 'inexact', path)
    t.is(find('/k/open/X%20'), '/k/open/X%20')
    for (const path of words`/k/opened/x /k/x/OPEN /k/op%20en/x /k/open%E2%88%95x`) t.is(find(path), path)
  }
  for (const open of [
    'GET /k/open/** https://api.example/k/open/** timeout=120',
    'GET /k/open/** https://other.example/k/open/** token=public',
    'POST /k/open/** https://api.example/k/open/** token=public'
  ]) {
    t.is(finder(open, other)('/k/OPEN/x'), '/k/OPEN/x', open)
  }
})

test('what wildcards match stays data, also if two segments differ only in letter case', t => {
  const find = finder(
    'GET /d/*/open/** https://api.example/d/*/open/** token=public',
    'GET /d/*/** https://api.example/d/*/**'
  )
  for (const path of words`/d/dXJuOmFk/x /d/OPEN/dXJuOmFk /d/open/x/open.`) t.is(find(path), path)
  for (const path of words`/d/dXJuOmFk/Open/x /d/a/open%20`) t.is(find(path), 'inexact', path)
})

test('a decision that is remembered is the decision for each path, rule and method', t => {
  const list = [
    'GET /a/b/** https://api.example/b/** token=public',
    'GET,POST /a/** https://api.example/**',
    'POST /c/*/d https://api.example/*'
  ]
  const piece = fc.constantFrom(...words`/ /a /b /c /d %2F %62 %20 %2e ; x B %252F %CC%81 .`)
  const request = fc.tuple(
    fc.constantFrom('GET', 'HEAD', 'POST', 'PUT'),
    fc.array(piece, { minLength: 1, maxLength: 6 })
  )
  const find = finder(...list)
  fc.assert(
    fc.property(fc.array(request, { minLength: 2, maxLength: 8 }), requests => {
      for (const [method, pieces] of [...requests, ...requests]) {
        const path = `/a${pieces.join('')}`
        if (find(path, method) !== finder(...list)(path, method)) return false
      }
      return true
    }),
    { numRuns: 300 }
  )
  t.pass()
})

// Some servers remove the parameters of each segment before they decode the path.
test('the order of decoding and removing does not matter', t => {
  const find = finder('GET /a/q/b/c https://api.example/q token=public', 'GET /a/** https://api.example/a/**')
  for (const path of words`/a/q%2Fb;y%2Fz/c /a/q%252Fb%3By%252Fz/c /a/q%EF%BC%8Fb;y%2Fz/c`) t.is(find(path), 'inexact')
  const mixed = finder('GET /r/*/*/* https://api.example/*/*/* token=public', 'GET /r/** https://api.example/**')
  t.is(mixed('/r/1%EF%BC%8F2%25EF%25BC%258F3%252F4'), 'inexact', 'only one of two full-width slashes is decoded')
  t.is(mixed('/r/1/2%23x/3%3Fx/4'), 'inexact', 'a server that removes the query, but not the fragment')
})

test('a path that this server handles itself is never forwarded', t => {
  const find = finder('GET /api/** https://api.example/**', 'GET /*/x/** https://api.example/*/**')
  for (const path of words`
    /api/auth;x/token /api/%61uth/token /api/auth%3Fx /healthz;x/x/y /%68ealthz/x
    /api/%2Fauth/token /api/;x/auth /api%2Fauth/token /api/auth%2Ftoken`)
    t.is(find(path), 'inexact', path)
  t.is(find('/api/auth2%2Ftoken'), '/auth2%2Ftoken')
})

test('* is the same segment for every upstream', t => {
  const find = finder('GET /p/*/d/** https://api.example/x/*/e/**')
  for (const id of ['x%2Fd', 'a%2Fb', 'a%252Fb', '%2F', 'x%EF%BC%8Fd', '%E2%84%85', ';x', '%3Bx', '%253b', '%EF%BC%9B'])
    t.is(find(`/p/${id}/d/y`), 'inexact', id)
  for (const id of ['urn%3Aadsk%3Avf.a%3Fversion%3D2', 'a;b', 'd', '%64', '100%2525', '%E5%B9%B3', '%C2%BD', '%23x']) {
    t.is(find(`/p/${id}/d/y%2Fz`), `/x/${id}/e/y%2Fz`)
  }
})

test('with encoded-slashes, * is one segment with encoded slashes', t => {
  const find = finder(
    'GET /d/*/secret/** https://api.example/s/*/** token=public encoded-slashes',
    'GET /d/*/m/*/cookies https://api.example/d/*/m/*/cookies encoded-slashes',
    'GET /d/a/b https://api.example/ab',
    'GET /o/*/details https://api.example/o/*/details'
  )
  for (const path of words`
    /d/${U}/m/urn%3Aadsk%3A${U}%2Foutput%2F3D%2520View%2F%257B3D%257D.svf/cookies
    /d/x%2Fy/m/z/cookies /d/x%2Fm/m/z%252Fcookies/cookies /d/%E5%B9%B3%EF%BC%8F%E5%9B%B3/m/%E2%84%85/cookies`)
    t.is(find(path), path)
  const inexact = words`
    /d/a%2F%2Fb/m/x/cookies /d/%2Fa/m/x/cookies /d/a%2F/m/x/cookies /d/a%2F..%2Fb/m/x/cookies /d/a%2F;b/m/x/cookies
    /d/a%252F%252Fb/m/x/cookies /d/a/m/%EF%BC%8F/cookies /d/a%2Fsecret/m/x/cookies /d/a%2Fb%3F/m/x/cookies
    /d/x%2Fy/m/z/cookies%00 /d/x%2Fy%2Fm/z/cookies /d/x%5Cy/m/z/cookies /o/a%2Fb/details
    /d/x%2Fy/%73ecret/z /d/x/secret%2Fm/y/cookies`
  for (const path of inexact) t.is(find(path), 'inexact', path)
  const twoStars = finder(
    'GET /s/*/secret https://api.example/*/secret token=public encoded-slashes',
    'GET /s/*/* https://api.example/*/* encoded-slashes'
  )
  // The slash of the first segment does not separate segments, so an upstream sees `secret` as the third one.
  t.is(twoStars('/s/x%2Fy/%73ecret'), 'inexact')
  t.is(twoStars('/s/x%2Fy/secret;%2Fz'), 'inexact')
  t.is(twoStars('/s/x%2Fy/other%2Fz'), '/x%2Fy/other%2Fz')
})

test('an escape in the path of a rule is compared byte for byte, and decoded for the other readings', t => {
  const find = finder('GET /a%20b/c https://api.example/c token=public', 'GET /a%20b/** https://api.example/d%20e/**')
  t.is(find('/a%20b/x%2Fy'), '/d%20e/x%2Fy')
  t.is(find('/a%20b/%63'), 'inexact')
  t.is(find('/a%2520b/x'), undefined)
})
