// Limits how many tests of a process run at the same time. AVA starts all tests of a process together, and those of a whole
// folder would take so long that their time limits would pass.
import test from 'ava'

const AT_ONCE = 4

let running = 0
const waiting: (() => void)[] = []

test.beforeEach(async () => {
  if (running === AT_ONCE) await new Promise<void>(resolve => waiting.push(resolve))
  else running += 1
})

test.afterEach.always(() => {
  const next = waiting.shift()
  if (next) next()
  else running -= 1
})
