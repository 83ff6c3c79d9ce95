/** Runs the processes of a program and its Redis, and harms them. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { launch } from '../program.js'

/** Kubernetes kills a process that has not ended by then. */
const LONGEST_STOP_MS = 30_000
const MEMORY_OF_KEYS =
  "local sum = 0 for _, key in ipairs(redis.call('KEYS', '*')) do sum = sum + redis.call('MEMORY', 'USAGE', key) end return sum"

/** @typedef {Awaited<ReturnType<typeof startFleet>>} Fleet */

/**
 * @param {import('./programs/common.js').Compared} program
 * @param {import('./cases.js').Case} which
 * @param {{ secret: string, providerUrl: string, apiUrl: string, lifetimeSeconds: number }} setting
 */
export async function startFleet(program, { processes: size = 2, withoutRedis, keepsFile }, setting) {
  const usesRedis = program.redis === 'always' || (program.redis === 'two processes' && size > 1)
  const needsRedis = usesRedis && !withoutRedis
  // The file must outlive the folder of a Redis that is killed.
  const folder = keepsFile ? await mkdtemp(join(tmpdir(), 'bench-redis-')) : undefined
  let redis
  const members = []
  const fleet = {
    ports: () => members.map(({ place }) => place.port),
    async start(index) {
      const redisUrl = redis && `redis://127.0.0.1:${redis.place.port}`
      const describe = place => program.describe(place, { ...setting, ...(redisUrl && { redisUrl }) })
      members[index] = await launch(describe, members[index]?.place.port)
    },
    async kill(index) {
      members[index].signal('SIGKILL')
      await members[index].end()
    },
    async restart(index) {
      await members[index].end(program.stopSignal, LONGEST_STOP_MS)
      await fleet.start(index)
    },
    signal: (index, name) => members[index].signal(name),
    signalRedis: name => redis.signal(name),
    async startRedis() {
      redis = await launch(place => describeRedis(place, folder), redis?.place.port)
    },
    async killRedis() {
      redis.signal('SIGKILL')
      await redis.end()
    },
    usage() {
      const each = members.map(member => member.usage())
      const sum = key => each.reduce((total, usage) => total + usage[key], 0)
      return { cpuMicros: sum('cpuMicros'), residentBytes: sum('residentBytes') }
    },
    redisBytes: () => redis && Number(execFileSync('redis-cli', ['-p', redis.place.port, 'EVAL', MEMORY_OF_KEYS, '0'])),
    printed: () => members.map(member => member.printed()),
    async end() {
      await Promise.all([...members, redis].map(member => member?.end()))
      if (folder) await rm(folder, { recursive: true })
    }
  }
  try {
    if (needsRedis) await fleet.startRedis()
    for (let index = 0; index < size; index++) await fleet.start(index)
    return fleet
  } catch (error) {
    await fleet.end()
    throw error
  }
}

function describeRedis(place, fileFolder) {
  const file = fileFolder ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no']
  const where = ['--port', String(place.port), '--bind', '127.0.0.1', '--dir', fileFolder ?? place.folder]
  return { command: 'redis-server', args: [...where, '--save', '', ...file] }
}
