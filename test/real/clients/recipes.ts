// Follows the recipes of docs/bundlers.md: the files, flags and versions come from the document.
import { fencedBlocks, fencedLines } from '../../helpers/markdown.js'
import { readText } from '../../helpers/repository.js'
import { run } from '../programs.js'

/** The ports of the development server and of this server. */
export interface Ports {
  readonly development: number
  readonly server: number
}

/** Reads one section of docs/bundlers.md. `documentedPort` is the port of the development server in this section. */
export function recipe(heading: string, documentedPort: number) {
  const [, section = ''] = readText('docs/bundlers.md').split(new RegExp(`^## ${heading}\\n`, 'm'))
  const page = section.replace(/^## .*/ms, '')

  /** Replaces the ports of the recipe by ports that are free on this machine. */
  const withPorts = (text: string, ports: Ports) =>
    text.replaceAll(String(documentedPort), String(ports.development)).replaceAll('8080', String(ports.server))

  return {
    /** Returns the code block that contains a text. */
    block(text: string, ports: Ports): string {
      return withPorts(only(fencedBlocks(page).filter(block => block.text.includes(text))).text, ports)
    },
    /** Returns the flags of the command that starts the demo behind the development server. */
    demoFlags(ports: Ports): string[] {
      const line = only(fencedLines(page, 'sh').filter(text => text.includes(' --demo ')))
      return withPorts(line, ports).replace('npx platform-auth-server ', '').split(' ')
    },
    /** The package with the version that the document names as tested. */
    package: (name: string) => `${name}@${new RegExp(`\`${name}\` (\\d[\\d.]*\\d)`).exec(page)?.[1]}`
  }

  function only<T>(found: readonly T[]): T {
    if (found.length !== 1 || found[0] === undefined)
      throw new Error(`docs/bundlers.md has ${found.length} matches under ${heading}, not one.`)
    return found[0]
  }
}

/** Runs a program of the installed packages to its end. */
export function runInstalled(folder: string, script: string, ...args: readonly string[]): Promise<void> {
  return run({ command: process.execPath, args: [script, ...args], cwd: folder })
}
