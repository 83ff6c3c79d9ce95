// Runs in a separate process: starts a server with the settings from the command line and reports its CPU time and heap
// size over IPC.
import { closeSync, openSync } from 'node:fs'
import { getHeapSpaceStatistics } from 'node:v8'
import type { Config } from '#src/config/settings.js'
import { createLog } from '#src/server/log.js'
import { serve } from '#src/server/serve.js'

const config = JSON.parse(process.argv[2] ?? '') as Config
const log = createLog(config.log)
const server = await serve(config, { log })
const freeFiles = process.argv[3]
if (freeFiles !== undefined) await leaveFree(Number(freeFiles))

process.on('message', query => {
  process.send?.(query === 'cpuMs' ? { cpuMs: cpuMs() } : { heapUsed: heapUsed() })
})
process.on('disconnect', () => void server.close().then(() => process.exit()))
process.send?.({ port: server.port })

/**
 * Opens files until this process can open only `count` more. Node opens many files in parallel while it loads modules,
 * so the server first loads those that it would load in the background.
 */
async function leaveFree(count: number) {
  await Promise.all([import('got'), import('koa-static')])
  const opened: number[] = []
  try {
    for (;;) opened.push(openSync('/dev/null', 'r'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EMFILE') throw error
  }
  for (const file of opened.slice(-count)) closeSync(file)
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

function heapUsed(): number {
  // An object may become collectable only after the first collection has released the objects that refer to it, so
  // there are two.
  for (let run = 0; run < 2; run += 1) globalThis.gc?.()
  // V8 compiles a function again when it has been used often, so the space for code grows for a long time without a leak.
  const spaces = getHeapSpaceStatistics().filter(({ space_name }) => !space_name.startsWith('code_'))
  return spaces.reduce((sum, { space_used_size }) => sum + space_used_size, 0)
}
