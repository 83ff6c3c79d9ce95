/** Describes the machine of a run. */
import { execFileSync } from 'node:child_process'
import { cpus, loadavg, release, totalmem, type } from 'node:os'

const GIBIBYTE = 2 ** 30

export function describeMachine() {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGibibytes: Math.round(totalmem() / GIBIBYTE),
    system: `${type()} ${release()}`,
    node: process.version,
    redis: versionOf('redis-server', /v=(\S+)/),
    loadBefore: loadavg()[0].toFixed(1)
  }
}

function versionOf(program, pattern) {
  try {
    return pattern.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))?.[1]
  } catch {
    return undefined
  }
}
