/** The server as an operator starts it, flags and all, in a process that also tells what it costs. */
import { setTimeout } from 'node:timers/promises'
import { get } from './get.js'
import { answerParent } from './processes.js'
import { usage } from './usage.js'

const BETWEEN_LOOKS_MS = 20

answerParent({
  /** What `/readyz` says as soon as there is one to ask. */
  async ready(url) {
    for (;;) {
      const answer = await get({ url: `${url}/readyz` }).catch(() => undefined)
      if (answer?.status === 200) return JSON.parse(answer.body)
      await setTimeout(BETWEEN_LOOKS_MS)
    }
  },
  usage
})

await import('../bin/platform-auth-server.js')
// It could not start, and said why; the parent would wait for as long as it can be asked.
process.exit()
