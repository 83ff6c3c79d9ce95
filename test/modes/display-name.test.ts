import test from 'ava'
import { firstName, fullName } from '#src/modes/display-name.js'

test('the first value that is a name counts, without the space around it', t => {
  t.is(firstName(undefined, null, 5, {}, [], true, '', ' \t\n', ' Ada ', 'Grace'), 'Ada')
  t.is(firstName(), '')
  t.is(firstName(undefined), '')
})

test('a name has a thousand characters at most', t => {
  t.is(firstName('x'.repeat(1000)).length, 1000)
  t.is(firstName('x'.repeat(10_000)).length, 1000)
})

test('markup and writing directions stay the text they are', t => {
  for (const name of ['<script>alert(1)</script>', '\u202Eecila', '"};']) t.is(firstName(name), name)
})

test('a full name is what there is of it, with one space between', t => {
  t.is(fullName({ firstName: 'Ada', lastName: 'Lovelace' }), 'Ada Lovelace')
  t.is(fullName({ given_name: 'Ada', family_name: 'Lovelace' }), 'Ada Lovelace')
  t.is(fullName({ firstName: 'Ada' }), 'Ada')
  t.is(fullName({ family_name: 'Lovelace' }), 'Lovelace')
  t.is(fullName({ name: 'Ada' }), '')
  t.is(fullName({}), '')
})
