/** True for a JSON object. All endpoints return objects, so lists and other values are refused. */
export function isJsonObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}
