// Compares the output of a command with a file that a reviewer reads as text. UPDATE_GOLDEN=1 writes the file instead; delete
// it first, to remove the sections of deleted tests.
import { existsSync, writeFileSync } from 'node:fs'
import type { ExecutionContext } from 'ava'
import { readText, repository } from './repository.js'

// Some tests replace the environment.
const isUpdate = process.env.UPDATE_GOLDEN === '1'

type Golden = (t: ExecutionContext, text: string) => void

/** Returns an assertion that compares a text with the section of the file that has the title of the test. */
export function goldenFile(path: string): Golden {
  return function isAsWritten(t, text) {
    const sections = sectionsOf(existsSync(repository + path) ? readText(path) : '')
    if (isUpdate) {
      sections.set(t.title, text)
      const sorted = [...sections].sort(([a], [b]) => (a < b ? -1 : 1))
      writeFileSync(repository + path, sorted.map(([title, lines]) => `# ${title}\n${lines}\n`).join('\n'))
    }
    t.is(text, sections.get(t.title) ?? `no section in ${path}`)
  }
}

function sectionsOf(text: string): Map<string, string> {
  const parts = text.split(/^# /m).slice(1)
  return new Map(parts.map(part => [part.slice(0, part.indexOf('\n')), part.slice(part.indexOf('\n') + 1).trimEnd()]))
}
