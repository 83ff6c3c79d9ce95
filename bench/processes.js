/** Starts processes that are pinned to a core, and talks to them over Node's IPC channel. */
import { spawn, spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'

export const SERVER_CORE = 0
export const LOAD_CORE = 1
/** With this value, the operating system chooses the core. */
export const ANY_CORE = undefined

const LONGEST_COMPLAINT = 4000

/** The reason why processes are not pinned, or undefined if they are. */
export const unpinned =
  availableParallelism() < 2
    ? 'this machine has one core'
    : spawnSync('taskset', ['--version']).error
      ? '`taskset` is not installed'
      : undefined

/**
 * Returns the command line that runs `node ...args` on one core.
 * @param {number | undefined} core
 * @param {string[]} args
 * @returns {[command: string, args: string[]]}
 */
export function onCore(core, args) {
  return unpinned || core === ANY_CORE
    ? [process.execPath, args]
    : ['taskset', ['-c', String(core), process.execPath, ...args]]
}

/**
 * Starts a file of this folder that calls `answerParent`.
 * @param {string} file
 * @param {number | undefined} core
 * @param {string[]} [args]
 * @param {{ env?: Record<string, string | undefined>, cwd?: string }} [surroundings]
 */
export function startProcess(file, core, args = [], { env: settings = {}, cwd } = {}) {
  const [command, commandArgs] = onCore(core, [fileURLToPath(new URL(file, import.meta.url)), ...args])
  const env = { ...process.env, ...settings, NODE_ENV: 'production' }
  // The server writes its log to standard output, as in production. The benchmark discards the log.
  const child = spawn(command, commandArgs, { env, cwd, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  const name = [file, ...args].join(' ')
  let complaint = ''
  child.stderr.on('data', data => {
    complaint = (complaint + data).slice(-LONGEST_COMPLAINT)
  })
  const waiting = new Map()
  let asked = 0
  child.on('message', ({ id, value, error }) => {
    const { resolve, reject } = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) resolve(value)
    else reject(new Error(`${name}: ${error}`))
  })
  child.on('close', code => {
    for (const { reject } of waiting.values()) reject(new Error(`${name} ended with code ${code}: ${complaint}`))
  })
  return {
    /**
     * @param {string} question
     * @param {unknown} [data]
     * @returns {Promise<any>}
     */
    ask(question, data) {
      return new Promise((resolve, reject) => {
        const id = asked++
        waiting.set(id, { resolve, reject })
        child.send({ id, question, data })
      })
    },
    stop() {
      return new Promise(resolve => {
        if (!child.connected) return resolve()
        child.once('exit', resolve)
        child.disconnect()
      })
    }
  }
}

/**
 * The child's side: responds to the parent's questions until the parent disconnects.
 * @param {Record<string, (data: any) => unknown>} answers
 * @param {() => unknown} [end] called before this process ends
 */
export function answerParent(answers, end) {
  process.on('message', async ({ id, question, data }) => {
    try {
      process.send({ id, value: await answers[question](data) })
    } catch (error) {
      process.send({ id, error: error.stack })
    }
  })
  process.on('disconnect', async () => {
    await end?.()
    process.exit()
  })
}
