/** Whether an answer is what every endpoint promises: a JSON object, no list and no bare value. */
export function isJsonObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}
