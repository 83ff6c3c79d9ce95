#!/usr/bin/env node
// This file must parse on old versions of Node, so that they print a clear message instead of a syntax error. It has no
// top-level await and no optional chaining, and it imports the program only after the version check.
const [major, minor] = process.versions.node.split('.').map(Number)

if (major > 20 || (major === 20 && minor >= 19)) {
  // The kernel ignores a signal for process 1 of a container unless the process has a listener for it. Until the program has its
  // own listeners, these end the process.
  const endEarly = (_signal, number) => process.exit(128 + number)
  if (process.pid === 1) process.on('SIGTERM', endEarly).on('SIGINT', endEarly)
  import('../dist/bundle/main.js').then(async ({ main, processTerminal }) => {
    const terminal = processTerminal(signal => process.off(signal, endEarly))
    process.exitCode = await main(terminal)
  })
} else {
  process.stderr.write(`platform-auth-server needs Node 20.19 or newer; this is ${process.versions.node}.\n`)
  process.exitCode = 1
}
