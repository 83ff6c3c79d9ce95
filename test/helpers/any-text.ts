import fc from 'fast-check'

// All code points except surrogates, which are no characters by themselves.
const character = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff })
  )
  .map(codePoint => String.fromCodePoint(codePoint))

/**
 * Texts of any characters, a third of which are ASCII on average.
 * They replace the unit `binary` of fast-check, which first builds a table of all Unicode characters and takes a second.
 */
export function anyText(limits: { readonly maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.string({ ...limits, unit: character })
}
