// Runs in a process of its own: a server with the settings from the command line, which says over IPC what it is asked.
import type { Config } from '#src/config/settings.js'
import { createLog } from '#src/log.js'
import { startServer } from '#src/server.js'

const config = JSON.parse(process.argv[2] ?? '') as Config
const log = await createLog(config.log)
const server = await startServer(config, { log })

process.on('message', () => {
  // Twice: what the first run makes free may hold on to more.
  for (let run = 0; run < 2; run += 1) globalThis.gc?.()
  process.send?.({ heapUsed: process.memoryUsage().heapUsed })
})
process.on('disconnect', () => void server.close().then(() => process.exit()))
process.send?.({ port: server.port })
