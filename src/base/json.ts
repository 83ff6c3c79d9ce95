/**
 * Returns true if `json` is a JSON object, also one of another realm. Returns false for every other value, such as a Map or a
 * promise, whose content its names do not show.
 */
export function isJsonObject(json: unknown): json is Readonly<Record<string, unknown>> {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return false
  const prototype: unknown = Object.getPrototypeOf(json)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/** Parses JSON. Returns undefined if the string is not JSON. */
export function parseJson(string: string): unknown {
  try {
    return JSON.parse(string)
  } catch {
    return undefined
  }
}
