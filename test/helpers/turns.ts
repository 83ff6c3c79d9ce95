// Limits how many tests of a process run at the same time. AVA starts all tests of a process together, and those of a whole
// folder would take so long that their time limits would pass.
import test from 'ava'

const AT_ONCE = 4

let running = 0
const waiting: (() => void)[] = []

test.beforeEach(async () => {
  if (running === AT_ONCE) await new Promise<void>(resolve => waiting.push(resolve))
  else running += 1
  // Tests that need no input or output would otherwise all run in one turn of the event loop, for seconds. Meanwhile the connections
  // of other tests would be closed, because no data seems to arrive.
  await new Promise(resolve => setImmediate(resolve))
})

test.afterEach.always(() => {
  const next = waiting.shift()
  if (next) next()
  else running -= 1
})
