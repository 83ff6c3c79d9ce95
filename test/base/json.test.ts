import test from 'ava'
import fc from 'fast-check'
import { findJsonError } from '#src/base/json.js'

const broken: readonly (readonly [text: string, expected: string, place: string])[] = [
  ['', 'a value', 'line 1, column 1'],
  ['\n ', 'a value', 'line 2, column 2'],
  ['{', 'a name in double quotes or }', 'line 1, column 2'],
  ['{ port: 1 }', 'a name in double quotes or }', 'line 1, column 3'],
  ['{ "port" 1 }', 'a colon', 'line 1, column 10'],
  ['{ "port": }', 'a value', 'line 1, column 11'],
  ['{\n  "port": 8080\n  "mode": "dual"\n}', 'a comma or }', 'line 3, column 3'],
  ['{\r\n  "port": 8080,\r\n}', 'a name in double quotes', 'line 3, column 1'],
  ["{ 'port': 1 }", 'a name in double quotes or }', 'line 1, column 3'],
  ['{ "a": [1, 2', 'a comma or ]', 'line 1, column 13'],
  ['{ "a": [1, ] }', 'a value', 'line 1, column 12'],
  ['{ "a": [ }', 'a value or ]', 'line 1, column 10'],
  ['{ "a": [1} }', 'a comma or ]', 'line 1, column 10'],
  ['{ "a": 1 ]', 'a comma or }', 'line 1, column 10'],
  ['{} {}', 'the end of the file', 'line 1, column 4'],
  ['[01]', 'a value or ]', 'line 1, column 2'],
  ['[1.]', 'a value or ]', 'line 1, column 2'],
  ['[trueish]', 'a value or ]', 'line 1, column 2'],
  ['{ "a": "b\n" }', 'a value', 'line 1, column 8'],
  ['{ "a": "\\x" }', 'a value', 'line 1, column 8']
]

for (const [text, expected, place] of broken) {
  test(`the first error of this JSON is found: ${JSON.stringify(text)}`, t => {
    t.throws(() => JSON.parse(text))
    t.deepEqual(findJsonError(text), { expected, place })
  })
}

test('a file with a hundred thousand open brackets does not fill the stack', t => {
  t.deepEqual(findJsonError('['.repeat(100_000)), {
    expected: 'a file with at most 100 levels of brackets',
    place: 'line 1, column 102'
  })
})

test('an error is found exactly where a character that JSON does not know was inserted', t => {
  const between = fc.json().chain(json => fc.tuple(fc.constant(json), fc.nat(json.length)))
  fc.assert(
    fc.property(between, ([json, index]) => {
      // Inside a string the character is allowed, so the text stays valid.
      const text = `${json.slice(0, index)}~${json.slice(index)}`
      if (isValid(text)) return
      const { place } = findJsonError(text)
      const column = Number(place.replace('line 1, column ', ''))
      // The error is at the character, or at the start of the number, word or string that contains it. In a string, the
      // character is wrong only in an escape sequence.
      const before = json.slice(column - 1, index)
      t.true(column <= index + 1 && /^(?:[^[\]{},:"]*|"(?:[^"\\]|\\.)*\\?)$/.test(before), `${text} ${place}`)
    })
  )
})

function isValid(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
