/** Runs the candidate named on the command line, and measures its resources. */
import { answerParent } from './processes.js'
import { profilerAnswers } from './profiler.js'
import { usage } from './usage.js'

const [name] = process.argv.slice(2)
const { start } = await import(`./candidates/${name}.js`)
let candidate

const answers = {
  async start(bench) {
    candidate = await start(bench)
    return candidate.port
  },
  /** Returns the `Cookie` header of a browser with this session. */
  cookie: session => candidate.cookie(session),
  // A program of its own is measured instead of this process.
  usage: () => (candidate.usage ?? usage)(),
  ...profilerAnswers
}

answerParent(answers, () => candidate?.end?.())
