/** Runs the candidate named on the command line, and measures its resources. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { answerParent } from './processes.js'
import { profilerAnswers } from './profiler.js'
import { usage } from './usage.js'

const [name] = process.argv.slice(2)
const { start } = await import(`./candidates/${name}.js`)
let candidate
const delay = monitorEventLoopDelay({ resolution: 1 })

const answers = {
  async start(bench) {
    candidate = await start(bench)
    return candidate.port
  },
  /** Returns the `Cookie` header of a browser with this session. */
  cookie: session => candidate.cookie(session),
  // A program of its own is measured instead of this process.
  usage: () => (candidate.usage ?? usage)(),
  startDelay() {
    delay.reset()
    delay.enable()
  },
  /** Returns the delays of the event loop in milliseconds. */
  endDelay() {
    delay.disable()
    return { p99: delay.percentile(99) / 1e6, max: delay.max / 1e6 }
  },
  ...profilerAnswers
}

answerParent(answers, () => candidate?.end?.())
