#!/usr/bin/env node
import module from 'node:module'

// Node 22 keeps what it compiled for the next start; where it cannot, or does not know this, it just compiles again.
module.enableCompileCache?.()
const { main } = await import('../dist/cli/main.js')

process.exitCode = await main()
