/** Finds the program of Redis. */
import { spawnSync } from 'node:child_process'

/** The name of the program, or undefined if none is installed. */
export const redisProgram = ['redis-server', 'valkey-server'].find(name => !spawnSync(name, ['--version']).error)
