// A separate process with a server at a given port. Its argument is its configuration.
import type { Config } from '#src/config/settings.js'
import { serve } from '#src/server.js'

const config = JSON.parse(process.argv[2] ?? '') as Config
await serve(config)
process.send?.('listening')
