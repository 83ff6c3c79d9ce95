/** Starts the server with its command line, as an operator would, in a process that also measures its resources. */
import { setTimeout } from 'node:timers/promises'
import { get } from './get.js'
import { answerParent } from './processes.js'
import { profilerAnswers } from './profiler.js'
import { usage } from './usage.js'

const BETWEEN_LOOKS_MS = 20

answerParent({
  /** Returns the response of `/readyz` as soon as the server responds. */
  async ready(url) {
    for (;;) {
      const answer = await get({ url: `${url}/readyz` }).catch(() => undefined)
      if (answer?.status === 200) return JSON.parse(answer.body)
      await setTimeout(BETWEEN_LOOKS_MS)
    }
  },
  usage,
  ...profilerAnswers
})

const { main } = await import('../dist/cli/main.js')
// If the server could not start, it has printed the reason. Without this exit, the parent would wait for this process.
process.exit(await main())
