import test from 'ava'
import fc from 'fast-check'
import { readCookie } from '#src/session/cookie-header.js'
import { cpuMsOf } from '../helpers/cpu-time.js'

const headers: readonly (readonly [header: string, value: string | undefined])[] = [
  ['', undefined],
  ['name=value', 'value'],
  ['other=1; name=value; more=2', 'value'],
  ['other=1;name=value;more=2', 'value'],
  ['other=1; \t name=value  ; more=2', 'value'],
  ['name=', ''],
  ['name=;name=second', ''],
  ['name=first; name=second', 'first'],
  ['name=a=b==', 'a=b=='],
  ['name', undefined],
  ['name; name=value', 'value'],
  ['xname=value', undefined],
  ['name.1=value', undefined],
  ['name_login=1; name=value', 'value'],
  ['xname=1; namex=2; x-name=3; name=value', 'value'],
  ['other=name=1; name=value', 'value'],
  ['other=x name=1; name=value', 'value'],
  ['NAME=1', undefined],
  ['namename=1; name=value', 'value'],
  [';;; ;name=value', 'value']
]

for (const [header, value] of headers) {
  test(`in the Cookie header "${header}" the cookie "name" is ${value === undefined ? 'missing' : `"${value}"`}`, t => {
    t.is(readCookie(header, 'name'), value)
  })
}

test('each cookie of a header is found by its name, and the first of several cookies with the same name is used', t => {
  const token = fc.stringMatching(/^[A-Za-z0-9._-]{1,8}$/)
  const value = fc.stringMatching(/^[A-Za-z0-9._=-]{0,8}$/)
  const pairs = fc.array(fc.tuple(token, value), { maxLength: 8 })
  fc.assert(
    fc.property(pairs, token, (cookies, name) => {
      const header = cookies.map(([name, value]) => `${name}=${value}`).join('; ')
      t.is(readCookie(header, name), cookies.find(([other]) => other === name)?.[1])
      for (const [name] of cookies) t.is(readCookie(header, name), cookies.find(([other]) => other === name)?.[1])
    })
  )
  t.pass()
})

test('a Cookie header full of similar names is parsed quickly', t => {
  for (const piece of ['name', 'name ', ' name', ';name', 'name;', '    ']) {
    const header = piece.repeat(32_768 / piece.length)
    t.true(cpuMsOf(() => t.is(readCookie(header, 'name'), undefined)) < 250, piece)
  }
})
