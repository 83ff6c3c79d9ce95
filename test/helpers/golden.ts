// Compares texts with a file that a reviewer reads. UPDATE_GOLDEN=1 writes the file instead; delete it first, to remove the
// sections of deleted tests. Some files also contain the inputs, so a new case is a section in the file.
import { existsSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { readText, repository } from './repository.js'

// Some tests replace the environment.
const isUpdate = process.env.UPDATE_GOLDEN === '1'

type Golden = (t: ExecutionContext, text: string, title?: string) => void
type OutputOf = (t: ExecutionContext, title: string, input: string) => string | Promise<string>

/** Returns an assertion that compares a text with the section of the file that has the title of the test, or another one. */
export function goldenFile(path: string): Golden {
  return function isAsWritten(t, text, title = t.title) {
    const sections = sectionsOf(path)
    if (isUpdate) {
      sections.set(title, text)
      const sorted = [...sections].sort(([a], [b]) => (a < b ? -1 : 1))
      writeFileSync(repository + path, sorted.map(([title, lines]) => `# ${title}\n${lines}\n`).join('\n'))
    }
    t.is(text, sections.get(title) ?? `no section in ${path}`)
  }
}

/** Declares a test for each section of a file, which has an input and, after a line with an arrow, the output. */
export function testSections(path: string, outputOf: OutputOf): void {
  const isAsWritten = goldenFile(path)
  for (const [title, text] of sectionsOf(path))
    test(`${basename(path, '.txt')}: ${title}`, async t => {
      const [input = ''] = text.split(/^→$/m, 1)
      const output = await outputOf(t, title, input.replace(/\n$/, ''))
      isAsWritten(t, `${input}→\n${output}`.trimEnd(), title)
    })
}

function sectionsOf(path: string): Map<string, string> {
  const text = existsSync(repository + path) ? readText(path) : ''
  const parts = text.split(/^# /m).slice(1)
  return new Map(parts.map(part => [part.slice(0, part.indexOf('\n')), part.slice(part.indexOf('\n') + 1).trimEnd()]))
}
