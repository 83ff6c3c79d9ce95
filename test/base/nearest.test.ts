import test from 'ava'
import { nearest } from '#src/base/nearest.js'

const names = [
  'port',
  'mode',
  'session.secret',
  'session.inactivityTimeout',
  'platform.clientId',
  '--session-secret-file'
]

const guesses: readonly (readonly [string, string | undefined])[] = [
  ['port', 'port'],
  ['prot', 'port'],
  ['pory', 'port'],
  ['PORT', 'port'],
  ['mod', 'mode'],
  ['session.secrets', 'session.secret'],
  ['session.inactivity', 'session.inactivityTimeout'],
  ['platform.clientid', 'platform.clientId'],
  ['--session-secret', '--session-secret-file'],
  ['x', undefined],
  ['', undefined],
  ['somethingelse', undefined]
]

for (const [word, guess] of guesses) {
  test(`the suggestion for ${word || 'an empty word'} is ${guess ?? 'none'}`, t => t.is(nearest(word, names), guess))
}

test('a candidate that matches the whole word is preferred to one that matches its beginning, and another form can be compared', t => {
  t.is(nearest('secret_file', ['secret', 'secret_file']), 'secret_file')
  t.is(
    nearest('clientIdd', names, name => [name, name.split('.').at(-1) ?? name]),
    'platform.clientId'
  )
})
