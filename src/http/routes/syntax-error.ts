/** Finds the place of a syntax error in an ECMAScript module. */
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { fileURLToPath, pathToFileURL } from 'node:url'

export interface SourcePosition {
  readonly file: string
  readonly line: number
}

/**
 * Returns the file and line of a syntax error that `import(path)` has thrown, or undefined if the place cannot be
 * found. Node tells the place only when the error ends the process. This function therefore lets another process check
 * the module, and then the modules that it imports by relative paths. No module is run.
 */
export async function syntaxErrorPlace(path: string): Promise<SourcePosition | undefined> {
  const addresses = new Set([pathToFileURL(path).href])
  // The set grows while it is iterated, and each module is checked once.
  for (const address of addresses) {
    const source = await readFile(fileURLToPath(address), 'utf8').catch(() => '')
    const line = await wrongLine(source)
    if (line !== undefined) return { file: fileURLToPath(address), line }
    for (const [, specifier = ''] of source.matchAll(relativeImports)) addresses.add(new URL(specifier, address).href)
  }
  return undefined
}

const relativeImports = /\b(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"]+\.m?js)['"]/g

/** Returns the line of the first syntax error in the source of a module. */
async function wrongLine(source: string): Promise<number | undefined> {
  const node = spawn(process.execPath, ['--check', '--input-type=module'], { stdio: ['pipe', 'ignore', 'pipe'] })
  // If Node cannot be started, there is no output, and the error message stays without a line.
  node.on('error', () => {})
  node.stdin.on('error', () => {})
  node.stdin.end(source)
  const [, line] = /^\[stdin\]:(\d+)$/m.exec(await text(node.stderr)) ?? []
  return line === undefined ? undefined : Number(line)
}
