/** Measures the resources of processes. */
import { readdirSync, readFileSync } from 'node:fs'

// Linux reports CPU times in hundredths of a second on every machine (USER_HZ, proc(5)).
const TICK_MICROS = 10_000

/** Measures this process. */
export function usage() {
  const { user, system } = process.cpuUsage()
  return { cpuMicros: user + system, residentBytes: process.memoryUsage.rss() }
}

/**
 * Measures all processes of a process group, those that have ended included. Needs the `/proc` of Linux.
 * @param {number} group the process id of the first process
 */
export function usageOfGroup(group) {
  let cpuMicros = 0
  let residentBytes = 0
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      // The fields after the name of the program, which may contain spaces: state, parent, group, and so on (proc(5)).
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ')
      if (Number(fields[2]) !== group) continue
      // User and system time of the process, and of its children that have ended.
      cpuMicros += fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MICROS
      // Processes share most of their memory. PSS counts a shared page once, where the sum of the RSS would count it often.
      const [, kibibytes] = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))
      residentBytes += Number(kibibytes) * 1024
    } catch (error) {
      // The process ended after it was listed.
      if (error.code !== 'ENOENT' && error.code !== 'ESRCH') throw error
    }
  }
  return { cpuMicros, residentBytes }
}
