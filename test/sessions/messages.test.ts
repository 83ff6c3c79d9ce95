import test from 'ava'
import fc from 'fast-check'
import { createKeyring } from '#src/cookie/keyring.js'
import type { Message } from '#src/sessions/cells.js'
import { createMessageSeal } from '#src/sessions/redis/redis-cells.js'
import { createClock } from '../helpers/clock.js'

const OLD = 'the old secret of these tests, long enough'
const NEW = 'the new secret of these tests, long enough'
const message: Message = { kind: 'loggedOut', id: 'q3-_Zz09', rev: 1, from: 'me', end: { reason: 'logged_out' } }

function setUp({ secrets = [OLD], channel = 'a:everyone', clock = createClock() } = {}) {
  const keyring = createKeyring(secrets)
  return { keyring, clock, ...createMessageSeal(keyring.sealer('message'), channel, clock.now) }
}

test('a sealed message opens to the same message, and does not show it', t => {
  const { seal, open } = setUp()
  const id = 'i'.repeat(64)
  const from = '01234567-89ab-cdef-0123-456789abcdef'
  const messages: readonly Message[] = [
    { kind: 'lost', id, rev: 1, from },
    { kind: 'loggedOut', id, rev: 2, from, end: { reason: 'denied', problem: 'not_verified', missing: [] } },
    { kind: 'pause', ms: 60_000 },
    { kind: 'loginPause', ms: 60_000 }
  ]
  for (const sent of messages) {
    const text = seal(sent)
    t.regex(text, /^[A-Za-z0-9_.]{1,512}$/)
    t.false(text.includes('iiii'))
    t.deepEqual(open(text), sent)
  }
})

test('no text that was not sealed opens', t => {
  const { open } = setUp()
  const plain = ['', 'pause 60000', 'mark 60000 out:q3-_Zz09', 'out q3-_Zz09 0 ', 'A'.repeat(1_000_000)]
  for (const text of plain) t.is(open(text), undefined)
  fc.assert(fc.property(fc.oneof(fc.string(), fc.base64String()), text => open(text) === undefined))
  t.pass()
})

test('a message that was sealed with an unknown secret, for another channel or for another purpose does not open', t => {
  const { open, keyring, clock } = setUp()
  t.is(open(setUp({ secrets: [NEW], clock }).seal(message)), undefined)
  t.is(open(setUp({ channel: 'b:everyone', clock }).seal(message)), undefined)
  const plaintext = Buffer.from(JSON.stringify({ ...message, at: clock.now() }))
  t.is(open(keyring.sealer('shared results').seal(plaintext, 'a:everyone')), undefined)
  t.not(open(keyring.sealer('message').seal(plaintext, 'a:everyone')), undefined)
})

test('a message of an unknown kind or without a time does not open, even with the right key', t => {
  const { open, keyring, clock } = setUp()
  const sealed = (content: object) => keyring.sealer('message').seal(Buffer.from(JSON.stringify(content)), 'a:everyone')
  const at = clock.now()
  for (const kind of ['login', 'toString', '', undefined, 1]) t.is(open(sealed({ ...message, kind, at })), undefined)
  for (const wrong of [undefined, null, 'soon', {}]) t.is(open(sealed({ ...message, at: wrong })), undefined)
  t.deepEqual(open(sealed({ ...message, at })), message)
})

test('during a rotation of the secret, replicas with both secrets open the messages of all replicas', t => {
  const before = setUp()
  const during = setUp({ secrets: [NEW, OLD], clock: before.clock })
  t.deepEqual(during.open(before.seal(message)), message)
  t.is(before.open(during.seal(message)), undefined)
  before.keyring.replace([NEW, OLD])
  t.deepEqual(before.open(during.seal(message)), message)
  during.keyring.replace([NEW])
  const fromOld = setUp({ clock: before.clock }).seal(message)
  t.is(during.open(fromOld), undefined)
})

test('a pause is shorter by the age of its message, and five minutes after it was sealed it no longer opens', t => {
  const { seal, open, clock } = setUp()
  const text = seal({ kind: 'pause', ms: 60_000 })
  clock.advance(1500)
  t.deepEqual(open(text), { kind: 'pause', ms: 58_500 })
  clock.advance(298_500)
  t.deepEqual(open(text), { kind: 'pause', ms: -240_000 })
  clock.advance(1)
  t.is(open(text), undefined)
})

test('a pause of a process whose clock is ahead has its whole length, and does not open if the clock is more than five minutes ahead', t => {
  const { seal, open, clock } = setUp()
  clock.advance(300_000)
  const text = seal({ kind: 'pause', ms: 60_000 })
  clock.advance(-300_000)
  t.deepEqual(open(text), { kind: 'pause', ms: 60_000 })
  clock.advance(-1)
  t.is(open(text), undefined)
})
