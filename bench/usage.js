/** Measures the resources of this process. */
export function usage() {
  const { user, system } = process.cpuUsage()
  return { cpuMicros: user + system, residentBytes: process.memoryUsage.rss() }
}
