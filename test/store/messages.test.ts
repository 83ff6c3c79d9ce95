import test from 'ava'
import fc from 'fast-check'
import { createBroadcastSeal } from '#src/session/broadcast-seal.js'
import { createKeyring } from '#src/session/keyring.js'
import { createClock } from '../helpers/clock.js'

const OLD = 'the old secret of these tests, long enough'
const NEW = 'the new secret of these tests, long enough'
const kinds = ['logout', 'pause'] as const
const message = { kind: 'logout', id: 'q3-_Zz09', value: '60000' } as const

function setUp({ secrets = [OLD], channel = 'a:everyone', clock = createClock() } = {}) {
  const keyring = createKeyring(secrets)
  return { keyring, clock, ...createBroadcastSeal({ keyring, channel, kinds, now: clock.now }) }
}

test('a sealed message opens to the same kind, id and value, and does not show them', t => {
  const { seal, open } = setUp()
  for (const kind of kinds) {
    for (const value of ['', '60000', 'a value, with ~ and spaces', 'x'.repeat(200)]) {
      const sent = { kind, id: 'i'.repeat(64), value }
      const text = seal(sent)
      t.regex(text, /^[A-Za-z0-9_-]{1,512}$/)
      t.false(text.includes('iiii'))
      t.deepEqual(open(text), { ...sent, ageMs: 0 })
    }
  }
})

test('a changed message does not open', t => {
  const { seal, open } = setUp()
  const text = seal(message)
  for (let index = 0; index < text.length; index++) {
    const other = text[index] === 'A' ? 'B' : 'A'
    t.is(open(text.slice(0, index) + other + text.slice(index + 1)), undefined, `character ${index}`)
    t.is(open(text.slice(0, index)), undefined, `${index} characters`)
  }
  for (const more of ['A', '=', ' ', '\n']) t.is(open(text + more), undefined)
})

test('no text that was not sealed opens', t => {
  const { open } = setUp()
  const plain = ['', 'pause 60000', 'mark 60000 logout:q3-_Zz09', 'logout q3-_Zz09 0 60000', 'A'.repeat(1_000_000)]
  for (const text of plain) t.is(open(text), undefined)
  fc.assert(fc.property(fc.oneof(fc.string(), fc.base64String()), text => open(text) === undefined))
  t.pass()
})

test('a message that was sealed with an unknown secret, for another channel or for another purpose does not open', t => {
  const { open, keyring, clock } = setUp()
  t.is(open(setUp({ secrets: [NEW], clock }).seal(message)), undefined)
  t.is(open(setUp({ channel: 'b:everyone', clock }).seal(message)), undefined)
  const plaintext = Buffer.from(`logout ${message.id} ${clock.now()} 60000`)
  t.is(open(keyring.sealer('shared results').seal(plaintext, 'a:everyone')), undefined)
  t.not(open(keyring.sealer('broadcast').seal(plaintext, 'a:everyone')), undefined)
})

test('a message of an unknown kind or with a malformed id, time or value does not open, even with the right key', t => {
  const { open, keyring, clock } = setUp()
  const sealed = (plaintext: string) => keyring.sealer('broadcast').seal(Buffer.from(plaintext), 'a:everyone')
  const now = clock.now()
  for (const plaintext of [
    '',
    `login abc ${now} 1`,
    `toString abc ${now} 1`,
    `logout  ${now} 1`,
    `logout a:b ${now} 1`,
    `logout ${'a'.repeat(65)} ${now} 1`,
    `logout abc ${now}`,
    `logout abc soon 1`,
    `logout abc -1 1`,
    `logout abc ${now} ${'1'.repeat(201)}`,
    `logout abc ${now} 1\n`,
    `logout abc ${now} ü`
  ]) {
    t.is(open(sealed(plaintext)), undefined, plaintext)
  }
  t.not(open(sealed(`logout abc ${now} 1`)), undefined)
})

test('a malformed message is not sealed', t => {
  const { seal } = setUp()
  for (const wrong of [
    { id: '' },
    { id: 'a b' },
    { id: 'a'.repeat(65) },
    { value: 'x'.repeat(201) },
    { value: 'a\nb' },
    { kind: 'login' as 'logout' }
  ]) {
    t.throws(() => seal({ ...message, ...wrong }), { instanceOf: TypeError })
  }
})

test('during a rotation of the secret, replicas with both secrets open the messages of all replicas', t => {
  const before = setUp()
  const during = setUp({ secrets: [NEW, OLD], clock: before.clock })
  t.like(during.open(before.seal(message)), message)
  t.is(before.open(during.seal(message)), undefined)
  before.keyring.replace([NEW, OLD])
  t.like(before.open(during.seal(message)), message)
  during.keyring.replace([NEW])
  const fromOld = setUp({ clock: before.clock }).seal(message)
  t.is(during.open(fromOld), undefined)
})

test('a message tells its age, and five minutes after it was sealed it does not open any more', t => {
  const { seal, open, clock } = setUp()
  const text = seal(message)
  clock.advance(1500)
  t.is(open(text)?.ageMs, 1500)
  clock.advance(298_500)
  t.is(open(text)?.ageMs, 300_000)
  clock.advance(1)
  t.is(open(text), undefined)
})

test('a message of a replica whose clock is ahead has the age 0, and does not open if its clock is more than five minutes ahead', t => {
  const { seal, open, clock } = setUp()
  clock.advance(300_000)
  const text = seal(message)
  clock.advance(-300_000)
  t.is(open(text)?.ageMs, 0)
  clock.advance(-1)
  t.is(open(text), undefined)
})
