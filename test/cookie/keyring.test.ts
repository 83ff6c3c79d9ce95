import test from 'ava'
import fc from 'fast-check'
import { dottedText } from '#src/base/text-encoding.js'
import { createKeyring, type Sealer } from '#src/cookie/keyring.js'

const FIRST = 'the first secret of these tests, long'
const SECOND = 'the second secret of these tests, too'
// The format must stay readable: a release that cannot open this value would log everyone out when it is installed.
const FROM_AN_EARLIER_RELEASE = 'Ae4pTodoLKXGNvkGcWIXSyoL8TM6T_5RVT8.8kdfXDy.80MtGObJ1dv2.nXlPO02B_3URtR6sNQ'
const plaintext = Buffer.from('what nobody but us may read')

function sealer(secrets: readonly string[] = [FIRST], purpose = 'purpose'): Sealer {
  return createKeyring(secrets).sealer(purpose)
}

test('a sealed value opens to the same bytes, and is text without hyphens, of a fixed additional length that does not contain them', t => {
  const { seal, open, lengthOf } = sealer()
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.string(), (bytes, context) => {
      const sealed = seal(Buffer.from(bytes), context)
      t.deepEqual(open(sealed, context), Buffer.from(bytes))
      t.regex(sealed, /^[A-Za-z0-9_.]+$/)
      const raw = dottedText.bytesOf(sealed)
      t.is(sealed.length, lengthOf(Buffer.from(bytes)))
      // Fewer bytes than these may be in the sealed value by chance.
      if (bytes.length >= 12) t.false(raw.includes(Buffer.from(bytes)))
    })
  )
})

test('of a thousand values that seal the same content for two purposes, each has another IV and ciphertext, and the same header for its purpose', t => {
  const ofPurpose = ['one', 'two'].map(purpose => {
    const { seal } = sealer([FIRST], purpose)
    return Array.from({ length: 500 }, () => dottedText.bytesOf(seal(plaintext, '')))
  })
  const different = (values: readonly Buffer[], from: number, to?: number) =>
    new Set(values.map(bytes => bytes.toString('hex', from, to))).size
  for (const values of ofPurpose) t.is(different(values, 0, 5), 1)
  t.is(different(ofPurpose.flat(), 5, 17), 1000)
  t.is(different(ofPurpose.flat(), 17), 1000)
})

test('a value that was sealed with a second key opens only with this key and the secret', t => {
  const { seal, open } = sealer()
  const sealed = seal(plaintext, 'context', 'second key')
  t.deepEqual(open(sealed, 'context', 'second key'), plaintext)
  t.is(open(sealed, 'context'), undefined, 'the secret alone')
  t.is(open(sealed, 'context', 'another key'), undefined)
  t.is(open(sealed, 'other context', 'second key'), undefined)
  t.is(sealer([SECOND]).open(sealed, 'context', 'second key'), undefined, 'the second key alone')
  t.is(open(seal(plaintext, 'context'), 'context', 'second key'), undefined)
  t.deepEqual(sealer([SECOND, FIRST]).open(sealed, 'context', 'second key'), plaintext, 'after a change of the secret')
})

test('a sealed value with any flipped bit does not open', t => {
  const { seal, open } = sealer()
  const bytes = dottedText.bytesOf(seal(plaintext, 'context'))
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes)
    changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7))
    t.is(open(dottedText.textOf(changed), 'context'), undefined, `bit ${bit}`)
  }
})

test('a value sealed by an earlier release still opens, and only in its one spelling', t => {
  const { open } = sealer()
  t.is(open(FROM_AN_EARLIER_RELEASE, 'context')?.toString(), 'sealed on the first day')
  for (const other of '-+') t.is(open(FROM_AN_EARLIER_RELEASE.replace('.', other), 'context'), undefined, other)
  t.is(open(FROM_AN_EARLIER_RELEASE.replaceAll('.', '-'), 'context'), undefined, 'base64url')
  t.is(open(FROM_AN_EARLIER_RELEASE.replace('_', '/'), 'context'), undefined)
  // The last character has two unused bits, so Q, R, S and T decode to the same bytes.
  t.is(FROM_AN_EARLIER_RELEASE.at(-1), 'Q')
  for (const last of 'RST') t.is(open(FROM_AN_EARLIER_RELEASE.slice(0, -1) + last, 'context'), undefined)
})

test('a value that was sealed for another purpose, for another context or with another secret does not open', t => {
  const sealed = sealer().seal(plaintext, 'context')
  t.deepEqual(sealer().open(sealed, 'context'), plaintext)
  t.is(sealer([FIRST], 'another purpose').open(sealed, 'context'), undefined)
  t.is(sealer([SECOND]).open(sealed, 'context'), undefined)
  for (const context of ['', 'contex', 'context ', 'Context']) t.is(sealer().open(sealed, context), undefined)
})

test('the newest secret is used for sealing, older ones still open, and replacing the secrets affects existing and new sealers', t => {
  const keyring = createKeyring([FIRST])
  const before = keyring.sealer('purpose')
  const old = before.seal(plaintext, '')

  keyring.replace([SECOND, FIRST])
  const after = keyring.sealer('purpose')
  t.deepEqual(before.open(old, ''), plaintext)
  t.deepEqual(after.open(old, ''), plaintext)
  for (const { seal } of [before, after]) {
    const fresh = seal(plaintext, '')
    t.deepEqual(sealer([SECOND]).open(fresh, ''), plaintext)
    t.is(sealer([FIRST]).open(fresh, ''), undefined)
  }

  keyring.replace([SECOND])
  t.is(before.open(old, ''), undefined)
  t.is(after.open(old, ''), undefined)
  t.is(keyring.sealer('purpose').open(old, ''), undefined)
})

test('a keyring rejects an empty list of secrets and keeps its old secrets', t => {
  t.throws(() => createKeyring([]), { instanceOf: TypeError })
  const keyring = createKeyring([FIRST])
  const before = keyring.sealer('purpose')
  t.throws(() => keyring.replace([]), { instanceOf: TypeError })
  const sealed = before.seal(plaintext, '')
  t.deepEqual(before.open(sealed, ''), plaintext)
  t.deepEqual(keyring.sealer('purpose').open(sealed, ''), plaintext)
})

test('a sealed value contains nothing that the rules of web application firewalls look for', t => {
  const { seal } = sealer()
  for (let n = 0; n < 300; n++) t.notRegex(seal(Buffer.alloc(2700, n), ''), /-|\.(0x|env|git|nsr|ssh|zsh)/i)
})
