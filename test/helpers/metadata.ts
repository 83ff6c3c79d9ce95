import { APS, type ProviderMetadata } from '#src/provider/metadata.js'
import { quirksOf } from '#src/provider/quirks.js'

/** The metadata of a provider that has all endpoints but no quirks, with these changes. */
export function metadataWith(changes: Partial<ProviderMetadata> = {}): ProviderMetadata {
  return {
    ...APS,
    jwksUri: undefined,
    issParameterSupported: false,
    scopesSupported: undefined,
    unusable: [],
    quirks: quirksOf({}),
    ...changes
  }
}
