import test from 'ava'
import { createClock } from './clock.js'
import { createCookieJar } from './cookie-jar.js'

const https = new URL('https://app.example/api/auth/login')
const http = new URL('http://localhost:8080/api/auth/login')

const refused: readonly (readonly [why: string, url: URL, line: string])[] = [
  ['is 4097 bytes long', https, `a=${'x'.repeat(4096)}; Path=/`],
  ['is Secure but was set over plain http', http, 'a=1; Path=/; Secure'],
  ['is __Host- without Secure', https, '__Host-a=1; Path=/'],
  ['is __Host- without Path=/', https, '__Host-a=1; Secure'],
  ['is __Host- with another path', https, '__Host-a=1; Secure; Path=/api'],
  ['is __Host- with a Domain', https, '__Host-a=1; Secure; Path=/; Domain=app.example'],
  ['has the prefix __Host- in other letter case and is not Secure', https, '__hOsT-a=1; Path=/'],
  ['is __Secure- without Secure', https, '__Secure-a=1; Path=/'],
  ['is __Host-Http- without HttpOnly', https, '__Host-Http-a=1; Secure; Path=/'],
  ['has no name and a value that begins with __Host-', https, '=__Host-a=1; Path=/'],
  ['is for another domain', https, 'a=1; Domain=other.example'],
  ['is for a whole top-level domain', https, 'a=1; Domain=example'],
  ['is SameSite=None without Secure', https, 'a=1; SameSite=None'],
  ['has a control character', https, 'a=1\u0001; Path=/'],
  ['has expired by Max-Age', https, 'a=1; Max-Age=0'],
  ['has expired by Expires', https, 'a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT']
]

for (const [why, url, line] of refused) {
  test(`the jar drops a cookie that ${why}`, t => {
    const jar = createCookieJar()
    jar.receive(url, [line])
    t.deepEqual(jar.all(), [])
  })
}

test('the jar stores a cookie of exactly 4096 bytes and a valid __Host- cookie', t => {
  const jar = createCookieJar()
  jar.receive(https, [`a=${'x'.repeat(4095)}; Path=/`, '__Host-b=1; Path=/; Secure; HttpOnly'])
  const names = jar.all().map(({ name }) => name)
  t.deepEqual(names, ['a', '__Host-b'])
  t.true(jar.get('__Host-b')?.httpOnly)
})

test('a cookie without Domain is sent to every port of its host, to its path and the paths below, and to no other host', t => {
  const jar = createCookieJar()
  jar.receive(http, ['a=1'])
  t.is(jar.header(new URL('http://localhost:9999/api/auth/token')), 'a=1')
  t.is(jar.header(new URL('http://localhost:8080/api/auth')), 'a=1')
  t.is(jar.header(new URL('http://localhost:8080/api/authority')), undefined)
  t.is(jar.header(new URL('http://127.0.0.1:8080/api/auth/token')), undefined)
})

test('a cookie with the same name, domain and path as another replaces it and keeps its place in the order', t => {
  const jar = createCookieJar()
  jar.receive(http, ['a=old; Path=/', 'b=2; Path=/', 'c=3; Path=/api/auth', 'a=new; Path=/'])
  t.is(jar.header(http), 'c=3; a=new; b=2')
})

test('a cookie expires after its Max-Age, even if its Expires differs', t => {
  const clock = createClock(0)
  const jar = createCookieJar(clock.now)
  jar.receive(http, ['a=1; Path=/; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT'])
  clock.advanceSeconds(9)
  t.is(jar.header(http), 'a=1')
  clock.advanceSeconds(1)
  t.is(jar.header(http), undefined)
})

test('a Set-Cookie with an expiry in the past removes the cookie', t => {
  const jar = createCookieJar()
  jar.receive(http, ['a=1; Path=/', 'b=1; Path=/'])
  jar.receive(http, ['a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT'])
  t.is(jar.header(http), 'b=1')
})

test('plain http can neither read nor replace a Secure cookie', t => {
  const jar = createCookieJar()
  jar.receive(https, ['a=1; Path=/; Secure'])
  jar.receive(new URL('http://app.example/'), ['a=evil; Path=/'])
  t.is(jar.header(new URL('http://app.example/')), undefined)
  t.is(jar.header(https), 'a=1')
})

test('the jar sends Strict cookies only from the same site, and Lax cookies also with links from other sites', t => {
  const jar = createCookieJar()
  jar.receive(https, [
    'strict=1; Path=/; SameSite=Strict',
    'lax=1; Path=/; SameSite=Lax',
    'open=1; Path=/; SameSite=None; Secure'
  ])
  t.is(jar.header(https), 'strict=1; lax=1; open=1')
  t.is(jar.header(https, { sameSite: 'lax' }), 'lax=1; open=1')
  t.is(jar.header(https, { sameSite: 'none' }), 'open=1')
})

test('a change to a jar does not affect its clone', t => {
  const jar = createCookieJar()
  jar.receive(http, ['a=1; Path=/'])
  const copy = jar.clone()
  jar.set('a', 'tampered')
  copy.delete('b')
  t.is(copy.value('a'), '1')
  t.is(jar.header(http), 'a=tampered')
})
