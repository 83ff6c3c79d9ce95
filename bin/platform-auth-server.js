#!/usr/bin/env node
// This file must parse on old versions of Node, so that they get a sentence instead of a syntax error: no top-level
// await, no optional chaining, and no import of the program before the version is known.
import module from 'node:module'

const [major, minor] = process.versions.node.split('.').map(Number)

if (major > 20 || (major === 20 && minor >= 19)) {
  // Node 22 keeps the compiled code for the next start. Older versions lack the function and compile every time.
  if (module.enableCompileCache) module.enableCompileCache()
  import('../dist/cli/main.js').then(async ({ main }) => {
    process.exitCode = await main()
  })
} else {
  process.stderr.write(`platform-auth-server needs Node 20.19 or newer; this is ${process.versions.node}.\n`)
  process.exitCode = 1
}
