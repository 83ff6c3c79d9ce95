/** Finds the default export of a module, whichever compiler has written the module, and the line of an error in it. */

/**
 * Returns the default export of a module. TypeScript, esbuild and Babel compile `export default f` to `exports.default = f` in a
 * CommonJS module, and `import()` returns `exports` as the default. The wanted value is then `default.default`.
 * @param module the result of `import()`
 * @returns `value` is undefined if the module has no default export; `found` is a sentence that names the exports, for a message
 */
export function defaultExportOf(module: object) {
  const { default: value } = module as { readonly default?: unknown }
  const ofDefault = typeof value === 'object' && value !== null ? value : {}
  const names = new Set([...Object.keys(module), ...Object.keys(ofDefault)])
  for (const generated of ['__esModule', 'module.exports']) names.delete(generated)
  return {
    value: 'default' in ofDefault ? ofDefault.default : value,
    found: names.size === 0 ? 'It exports nothing.' : `It exports ${[...names].join(', ')}.`
  }
}

/**
 * Returns the line of a module in which an error occurred while it was imported. For a syntax error in an ES module, Node reports the
 * line only if the error ends the process.
 */
export function lineThrown({ stack = '' }: Error, path: string): string | undefined {
  return stack.split(path)[1]?.match(/^:(\d+)/)?.[1]
}
