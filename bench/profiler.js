/** Lets the parent process write a CPU profile of this process. */
import { writeFile } from 'node:fs/promises'
import inspector from 'node:inspector/promises'

const SAMPLING_MICROS = 200
const session = new inspector.Session()

/** The answers to the questions of profile.js. */
export const profilerAnswers = {
  async startProfile() {
    session.connect()
    await session.post('Profiler.enable')
    await session.post('Profiler.setSamplingInterval', { interval: SAMPLING_MICROS })
    await session.post('Profiler.start')
  },
  /** @param {string} file */
  async endProfile(file) {
    const { profile } = await session.post('Profiler.stop')
    session.disconnect()
    await writeFile(file, JSON.stringify(profile))
  }
}
