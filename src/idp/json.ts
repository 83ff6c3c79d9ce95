/** True for a JSON object, the form that every endpoint promises. Lists and bare values are refused. */
export function isJsonObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}
