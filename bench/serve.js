/** Runs the candidate named on the command line, and measures its resources. */
import { writeFile } from 'node:fs/promises'
import inspector from 'node:inspector/promises'
import { answerParent } from './processes.js'
import { usage } from './usage.js'

const [name] = process.argv.slice(2)
const { start } = await import(`./candidates/${name}.js`)
const profiler = new inspector.Session()
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
  async startProfile() {
    profiler.connect()
    await profiler.post('Profiler.enable')
    await profiler.post('Profiler.setSamplingInterval', { interval: 200 })
    await profiler.post('Profiler.start')
  },
  async endProfile(file) {
    const { profile } = await profiler.post('Profiler.stop')
    profiler.disconnect()
    await writeFile(file, JSON.stringify(profile))
  }
}

answerParent(answers, () => candidate?.end?.())
