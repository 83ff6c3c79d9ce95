/** Returns true if `json` is a JSON object. Returns false for an array, null and every other value. */
export function isJsonObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}

/** Parses JSON. Returns undefined if the string is not JSON. */
export function parseJson(string: string): unknown {
  try {
    return JSON.parse(string)
  } catch {
    return undefined
  }
}
