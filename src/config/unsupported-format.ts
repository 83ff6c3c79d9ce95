interface Format {
  readonly name: string
  /** The advice. `base` is the name of the new file without its extension. */
  readonly advice: (base: string) => string
}

const inYaml = (base: string) => `write the same settings in YAML, in ${base}.yaml`
const inJavaScript = (extension: string) => (base: string) =>
  `compile it or remove its types, and name the result ${base}${extension}`

const formats: ReadonlyMap<string, Format> = new Map([
  ['.toml', { name: 'TOML', advice: inYaml }],
  ['.ini', { name: 'INI', advice: inYaml }],
  ['.json5', { name: 'JSON5', advice: inYaml }],
  ['.jsonc', { name: 'JSON with comments', advice: inYaml }],
  ['.ts', { name: 'TypeScript', advice: inJavaScript('.mjs') }],
  ['.mts', { name: 'TypeScript', advice: inJavaScript('.mjs') }],
  ['.cts', { name: 'TypeScript', advice: inJavaScript('.cjs') }]
])

/**
 * Returns the reason why a settings file in a known format cannot be used, and what to do instead. Returns undefined for a
 * supported or unknown format.
 * @param extension the extension of the file, with its dot
 * @param base the name of the file that should replace it, without an extension
 */
export function unsupportedFormat(extension: string, base: string): string | undefined {
  const format = formats.get(extension)
  return format && `${format.name} is not supported; ${format.advice(base)}`
}
