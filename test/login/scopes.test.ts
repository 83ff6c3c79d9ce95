// The scopes that a token has in addition to those that were requested. Providers name the granted scopes in the response, in the
// access token itself, or nowhere.
import test from 'ava'
import { excessScopes, grantsNothing, listScopes, missingScopes } from '#src/login/scopes.js'
import { jwt } from '../helpers/jwt.js'

const requested = ['viewables:read', 'https://api.example/v1/Read.All', 'api://app-id/access', 'https://b.example/x/']
const opaque = 'opaque-token'

const inJwt = (claims: object) => ({ accessToken: jwt(claims) })
const inResponse = (...scope: readonly string[]) => ({ accessToken: opaque, scope })
type Response = { readonly accessToken: string; readonly scope?: readonly string[] }

const rows: readonly (readonly [what: string, tokenSet: Response, excess: readonly string[]])[] = [
  ['an opaque token without scope', { accessToken: opaque }, []],
  ['a JWT with neither claim', inJwt({ sub: 'user-1', aud: 'api' }), []],
  ['the requested scopes', inResponse(...requested), []],
  ['one scope of the requested ones', inJwt({ scope: 'viewables:read' }), []],
  ['Cognito: all scopes in the JWT', inJwt({ scope: 'data:read viewables:read' }), ['data:read']],
  ['the platform: a list', inJwt({ scope: ['data:read', 'viewables:read'] }), ['data:read']],
  ['Entra: scp as a string', inJwt({ scp: 'Read.All access User.Read' }), ['User.Read']],
  ['Okta: scp as a list', inJwt({ scp: ['data:read', 'openid'] }), ['data:read']],
  ['scope and scp', inJwt({ scope: 'viewables:read', scp: ['data:read'] }), ['data:read']],
  ['a narrow answer and a wide JWT', { ...inJwt({ scope: 'a' }), scope: ['viewables:read'] }, ['a']],
  ['a wide answer and a narrow JWT', { ...inJwt({ scope: 'viewables:read' }), scope: ['b'] }, ['b']],
  ['Keycloak: scopes of OpenID Connect', inJwt({ scope: 'openid profile email' }), []],
  ['another case', inResponse('Viewables:read'), ['Viewables:read']],
  ['the last segment of a URL', inResponse('Read.All', 'access'), []],
  ['the last segment in another case', inResponse('read.all'), ['read.all']],
  ['a middle segment', inResponse('v1'), ['v1']],
  ['the host', inResponse('api.example', 'app-id'), ['api.example', 'app-id']],
  ['a URL for a name', inResponse('https://evil/viewables:read'), ['https://evil/viewables:read']],
  ['another URL with the same segment', inResponse('https://b/Read.All'), ['https://b/Read.All']],
  ['the segment before a slash at the end', inResponse('x'), ['x']],
  ['an encrypted JWT', { accessToken: `${jwt({ scope: 'data:read' })}.a.b` }, []],
  ['claims of other types', inJwt({ scope: null, scp: [7, { a: 1 }] }), []]
]

for (const [what, tokenSet, excess] of rows) {
  test(`excess scopes: ${what}`, t => {
    t.deepEqual(excessScopes({ scope: undefined, ...tokenSet }, requested), [...excess])
  })
}

test('a list of scopes for the log is limited', t => {
  const many = Array.from({ length: 25 }, (_, index) => `scope-${index}`)
  t.regex(listScopes(many, []), /^scope-0, .*scope-19, 5 more$/)
  t.is(listScopes(['a'.repeat(101)], []), '1 more')
  t.is(listScopes(['read', 'token-of-12-c'], ['x.token-of-12-c.y', undefined]), 'read, 1 more')
})

const asked = ['openid', 'User.Read', 'https://api.example/v1/Files.Read', 'api://app-id/access/']

for (const [what, scope, missing] of [
  ['no scope', undefined, []],
  ['Entra: the last segments in another case', ['user.read', 'files.read', 'access'], []],
  ['Entra: whole URLs', ['https://a.example/User.Read', 'https://b.example/Files.Read', 'api://app-id/access'], []],
  ['GitHub: commas', ['User.Read,Files.Read,access'], []],
  ['Google: one scope that the user unticked', ['openid', 'User.Read', 'access'], [asked[2]]],
  ['only openid', ['openid'], asked.slice(1)],
  ['a part of a name', ['User.Rea', 'Files', 'accesss'], asked.slice(1)]
] as const) {
  test(`missing scopes: ${what}`, t => {
    t.deepEqual(missingScopes({ scope }, asked), [...missing])
  })
}

test('nothing was granted if the response names scopes, and none of them was requested', t => {
  t.true(grantsNothing({ scope: ['other'] }, asked))
  t.false(grantsNothing({ scope: ['openid'] }, asked))
  t.false(grantsNothing({ scope: undefined }, asked))
  t.false(grantsNothing({ scope: ['other'] }, []))
})
