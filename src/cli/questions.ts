import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { Checked } from '../config/check-value.js'
import { RunError } from './errors.js'
import type { Terminal } from './terminal.js'

export interface Question {
  readonly text: string
  /** Taken for an empty answer. */
  readonly otherwise: string
  /** What is typed is not shown. */
  readonly isSecret: boolean
  /** What an answer means, or why it will not do. */
  readonly check: (answer: string) => Checked
}

export interface Questions {
  /** Asks until the answer will do. */
  ask(question: Question): Promise<unknown>
  close(): void
}

export function askAt({ stdin, stdout }: Terminal): Questions {
  let isHidden = false
  const output = new Writable({
    write(chunk, _encoding, done) {
      if (!isHidden) stdout.write(chunk)
      done()
    }
  })
  const lines = createInterface({ input: stdin, output, terminal: true })
  // Ctrl-C and Ctrl-D close the interface, after which a question would wait for ever.
  const gone = new AbortController()
  lines.on('SIGINT', () => lines.close())
  lines.on('close', () => gone.abort())

  async function askOnce({ text, otherwise, isSecret }: Question): Promise<string> {
    const prompt = `${text}${otherwise ? ` [${otherwise}]` : ''}: `
    if (!isSecret) return (await lines.question(prompt, { signal: gone.signal })).trim() || otherwise
    stdout.write(prompt)
    isHidden = true
    try {
      return (await lines.question('', { signal: gone.signal })).trim() || otherwise
    } finally {
      isHidden = false
      stdout.write('\n')
    }
  }

  return {
    async ask(question) {
      for (;;) {
        const answer = await askOnce(question).catch((cause: unknown) => {
          throw new RunError('\nStopped; nothing was written.', { cause })
        })
        const checked = question.check(answer)
        if ('value' in checked) return checked.value
        stdout.write(`  ${checked.refused}\n`)
      }
    },
    close: () => lines.close()
  }
}
