#!/usr/bin/env node
// This file must parse on old versions of Node, so that they print a clear message instead of a syntax error. It has no
// top-level await and no optional chaining, and it imports the program only after the version check.
import module from 'node:module'

const [major, minor] = process.versions.node.split('.').map(Number)

if (major > 20 || (major === 20 && minor >= 19)) {
  // Node 22 and newer keep the compiled code for the next start. Older versions lack this function.
  if (module.enableCompileCache) module.enableCompileCache()
  import('../dist/cli/main.js').then(async ({ main }) => {
    process.exitCode = await main()
  })
} else {
  process.stderr.write(`platform-auth-server needs Node 20.19 or newer; this is ${process.versions.node}.\n`)
  process.exitCode = 1
}
