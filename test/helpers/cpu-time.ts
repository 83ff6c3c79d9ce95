/**
 * Returns the milliseconds of CPU time that this process uses for `work`, which must be synchronous. Unlike elapsed time, CPU
 * time does not depend on the load of the machine.
 */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
