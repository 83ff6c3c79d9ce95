// Loaded with `--import` into a program under test. On SIGUSR2 it moves the program's clock one hour ahead.
const now = Date.now
let aheadMs = 0
Date.now = () => now() + aheadMs
process.on('SIGUSR2', () => {
  aheadMs += 3_600_000
  process.stdout.write(`${JSON.stringify({ event: 'clock_moved' })}\n`)
})
