import test from 'ava'
import fc from 'fast-check'
import {
  chunkNames,
  joinChunks,
  MAX_VALUE_LENGTH,
  readCookie,
  SINGLE_COOKIE_LENGTH,
  splitIntoChunks
} from '#src/cookie/request-cookies.js'
import { cpuMsOf } from '../helpers/cpu-time.js'

// The longest cookie name that the settings accept, with the longest prefix.
const NAME = `__Host-${'n'.repeat(64)}`
const names = chunkNames(NAME)
// RFC 6265bis section 5.6: browsers keep a cookie if its name and value together have at most this many bytes.
const MAX_BROWSERS_KEEP = 4096

function cookieHeader(chunks: readonly (string | undefined)[]): string {
  const pairs = chunks.map((chunk, index) => chunk !== undefined && `${names[index]}=${chunk}`)
  return pairs.filter(Boolean).join('; ')
}

const lengths = fc.oneof(
  fc.nat(MAX_VALUE_LENGTH),
  fc.constantFrom(1, 2, 3, 4).chain(count => fc.integer({ min: count * 3800 - 4, max: count * 3800 - 1 })),
  fc.constant(MAX_VALUE_LENGTH)
)
const values = fc
  .tuple(lengths, fc.base64String({ minLength: 1, maxLength: 50 }))
  .map(([length, text]) => text.repeat(Math.ceil(length / text.length)).slice(0, length))

test('any value up to the limit is restored from its chunks, in any order and among other cookies', t => {
  fc.assert(
    fc.property(values, fc.boolean(), (value, backwards) => {
      const chunks = splitIntoChunks(value)
      const pairs = chunks.map((chunk, index) => `${names[index]}=${chunk}`)
      const header = ['theme=dark', ...(backwards ? pairs.reverse() : pairs), `${NAME}_login=x`].join('; ')
      t.is(joinChunks(header, names), value)
    })
  )
  t.pass()
})

test('a value has at most four chunks, and each chunk fits the size limit of browsers', t => {
  t.is(new Set(names).size, 4)
  fc.assert(
    fc.property(values, value => {
      const chunks = splitIntoChunks(value)
      t.true(chunks.length >= 1 && chunks.length <= 4)
      for (const [index, chunk] of chunks.entries()) {
        t.true(Buffer.byteLength(`${names[index]}${chunk}`) <= MAX_BROWSERS_KEEP)
      }
    })
  )
})

test('a value is split only if it does not fit one cookie, and the longest value fills four cookies', t => {
  t.is(splitIntoChunks('x'.repeat(SINGLE_COOKIE_LENGTH)).length, 1)
  t.is(splitIntoChunks('x'.repeat(SINGLE_COOKIE_LENGTH + 1)).length, 2)
  t.is(splitIntoChunks('x'.repeat(MAX_VALUE_LENGTH)).length, 4)
  t.is(splitIntoChunks('x'.repeat(MAX_VALUE_LENGTH + 1)).length, 5)
})

test('a value cannot be restored if one of its chunks is missing or empty', t => {
  const value = 'x'.repeat(MAX_VALUE_LENGTH)
  const chunks = splitIntoChunks(value)
  t.is(joinChunks(cookieHeader(chunks), names), value)
  for (const index of chunks.keys()) {
    t.not(joinChunks(cookieHeader(chunks.with(index, '')), names), value)
    t.is(joinChunks(cookieHeader((chunks as (string | undefined)[]).with(index, undefined)), names), undefined)
  }
  for (const header of ['', `${NAME}=`]) t.is(joinChunks(header, names), undefined)
})

test('chunks left over from a longer value do not change a shorter value', t => {
  const longer = splitIntoChunks('old'.repeat(5000))
  for (const value of ['short', 'y'.repeat(5000), 'z'.repeat(9000)]) {
    const chunks = splitIntoChunks(value)
    t.is(joinChunks(cookieHeader([...chunks, ...longer.slice(chunks.length)]), names), value)
  }
})

test('a value cannot be restored if its first chunk states a wrong number of chunks', t => {
  const value = 'x'.repeat(MAX_VALUE_LENGTH)
  const chunks = splitIntoChunks(value)
  t.is(chunks.length, 4)
  const rest = chunks[0]?.slice(1) ?? ''
  for (const count of ['0', '1', '2', '3', '5', '9', '-', '/', ':', 'a', '', ' ', '\u{1d7f9}']) {
    const joined = joinChunks(cookieHeader([`${count}${rest}`, ...chunks.slice(1)]), names)
    t.not(joined, value, `stated ${count}`)
    if (/^[059a-]$/.test(count)) t.is(joined, undefined, `stated ${count}`)
  }
})

const headers: readonly (readonly [header: string, value: string | undefined])[] = [
  ['', undefined],
  ['other=1;name=value;more=2', 'value'],
  ['other=1; \t name=value  ; more=2', 'value'],
  ['name=', ''],
  ['name=;name=second', ''],
  ['name=a=b==', 'a=b=='],
  ['name', undefined],
  ['name; name=value', 'value'],
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
      const wanted = [name, ...cookies.map(([name]) => name)]
      for (const name of wanted) t.is(readCookie(header, name), cookies.find(([other]) => other === name)?.[1])
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
