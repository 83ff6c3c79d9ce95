/** Describes the machine of a run. */
import { spawnSync } from 'node:child_process'
import { cpus, loadavg, release, totalmem, type } from 'node:os'

const GIBIBYTE = 2 ** 30

/** The name of the Redis program, or undefined if none is installed. */
export const redisProgram = ['redis-server', 'valkey-server'].find(name => !spawnSync(name, ['--version']).error)

/** The mean number of processes that ran or waited for a core in the last minute. */
export function load() {
  return loadavg()[0]
}

export function describeMachine() {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGibibytes: Math.round(totalmem() / GIBIBYTE),
    system: `${type()} ${release()}`,
    node: process.version,
    redis: redisProgram && /v=(\S+)/.exec(spawnSync(redisProgram, ['--version'], { encoding: 'utf8' }).stdout)?.[1],
    loadBefore: load().toFixed(1)
  }
}
