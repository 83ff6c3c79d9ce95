// The placeholders in the samples and documents of this server, and those that are common elsewhere. A client id that an
// operator has chosen may contain such a word, so only the whole text counts.
const PLACEHOLDER =
  /^(<.*>|\$\{.*\}|replace-.*|change-?me|((the|your)[-_ ]?(.*[-_ ])?)?(client|app(lication)?)[-_ ]?(id|secret)([-_ ](goes[-_ ])?here)?)$/i

/** True if a client id or client secret is a placeholder, such as `the-client-id` or `<your client id>`. */
export function isPlaceholder(text: string): boolean {
  return PLACEHOLDER.test(text)
}

/** The reason for which a placeholder is rejected. */
export const placeholderReason = 'it is a placeholder'
