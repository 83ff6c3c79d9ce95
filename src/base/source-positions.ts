/**
 * Names the TypeScript files in stack traces. Node does the same with `--enable-source-maps`, but then it reads all maps when the
 * modules are loaded, which takes up to a fifth of a start.
 */
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { fileURLToPath } from 'node:url'

const maps = new Map<string, SourceMap | undefined>()

/** Replaces the positions in modules that have a source map beside them by the positions in their sources. */
export function withSourcePositions(stack: string): string {
  return stack.replace(
    /(file:\/\/[^\s()]+\.js):(\d+):(\d+)/g,
    (position, module: string, line: string, column: string) => {
      const origin = mapOf(module)?.findOrigin(Number(line), Number(column))
      if (!origin || !('fileName' in origin)) return position
      const path = pathOf(origin.fileName, module)
      return path === undefined ? position : `${path}:${origin.lineNumber}:${origin.columnNumber}`
    }
  )
}

/**
 * Returns undefined if the source is not a file. Bundlers write names such as webpack://app/src/routes.ts into the maps of custom
 * routes, and an error here would replace the log line.
 */
function pathOf(source: string, module: string): string | undefined {
  try {
    return fileURLToPath(new URL(source, module))
  } catch {
    return undefined
  }
}

function mapOf(module: string): SourceMap | undefined {
  if (!maps.has(module)) maps.set(module, readMap(module))
  return maps.get(module)
}

function readMap(module: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(fileURLToPath(`${module}.map`), 'utf8')))
  } catch {
    return undefined
  }
}
