import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { Checked } from '../config/check-value.js'
import { RunError } from './errors.js'
import type { Terminal } from './terminal.js'

interface Question {
  readonly text: string
  /** Replaces an empty answer. */
  readonly defaultAnswer: string
  /** True if the terminal must not show the answer. */
  readonly isSecret: boolean
  /** Returns the value of an answer, or the reason why it is invalid. */
  readonly check: (answer: string) => Checked
}

export type Questions = ReturnType<typeof createQuestions>

export function createQuestions({ stdin, stdout }: Terminal) {
  let isHidden = false
  const output = new Writable({
    write(chunk, _encoding, done) {
      if (!isHidden) stdout.write(chunk)
      done()
    }
  })
  const lines = createInterface({ input: stdin, output, terminal: true })
  // Ctrl-C and Ctrl-D close the interface. A pending question is then aborted. Otherwise it would wait forever.
  const closed = new AbortController()
  lines.on('SIGINT', () => lines.close())
  lines.on('close', () => closed.abort())

  async function askOnce({ text, defaultAnswer, isSecret }: Question): Promise<string> {
    const prompt = `${text}${defaultAnswer ? ` [${defaultAnswer}]` : ''}: `
    if (!isSecret) return (await lines.question(prompt, { signal: closed.signal })).trim() || defaultAnswer
    stdout.write(prompt)
    isHidden = true
    try {
      return (await lines.question('', { signal: closed.signal })).trim() || defaultAnswer
    } finally {
      isHidden = false
      stdout.write('\n')
    }
  }

  return {
    /** Asks until the answer is valid, and returns its value. Throws RunError if the person cancels. */
    async ask(question: Question): Promise<unknown> {
      for (;;) {
        const answer = await askOnce(question).catch((cause: unknown) => {
          throw new RunError('\nCancelled. No file was written.', { cause })
        })
        const checked = question.check(answer)
        if ('value' in checked) return checked.value
        for (const message of checked.rejected) stdout.write(`  The answer ${message}\n`)
      }
    },
    close: () => lines.close()
  }
}
