import { EventEmitter } from 'node:events'
import test from 'ava'
import { untilStopped } from '#src/cli/signals.js'
import { eventually } from '../helpers/eventually.js'

/** A running server under the test's control: signals come in, and `finish` lets its close end. */
function running() {
  const signals = new EventEmitter()
  const exits: number[] = []
  const errors: string[] = []
  let finish: (error?: Error) => void = () => {}
  let closes = 0
  let time = 1000
  const terminal = {
    onSignal(signal: string, listener: () => void) {
      signals.on(signal, listener)
      return () => void signals.off(signal, listener)
    },
    exit: (code: number) => void exits.push(code),
    stderr: { write: (text: string) => errors.push(text) }
  } as unknown as Parameters<typeof untilStopped>[0]
  const close = () => {
    closes += 1
    return new Promise<void>((resolve, reject) => {
      finish = error => (error ? reject(error) : resolve())
    })
  }
  const ended = untilStopped(terminal, close, () => time)
  return {
    ended,
    exits,
    errors,
    closes: () => closes,
    finish: (error?: Error) => finish(error),
    send: (signal: string) => signals.emit(signal),
    pass: (ms: number) => {
      time += ms
    },
    listeners: () => signals.listenerCount('SIGINT') + signals.listenerCount('SIGTERM')
  }
}

for (const signal of ['SIGTERM', 'SIGINT']) {
  test(`${signal} closes the server, and the code is 0 once it has closed`, async t => {
    const server = running()
    server.send(signal)
    t.is(server.closes(), 1)
    server.finish()
    t.is(await server.ended, 0)
    t.deepEqual(server.exits, [])
    t.is(server.listeners(), 0)
  })
}

test('a second signal ends the process at once', t => {
  for (const [first, second] of [
    ['SIGTERM', 'SIGTERM'],
    ['SIGINT', 'SIGTERM'],
    ['SIGTERM', 'SIGINT'],
    ['SIGINT', 'SIGINT']
  ] as const) {
    const server = running()
    server.send(first)
    server.pass(500)
    server.send(second)
    t.deepEqual(server.exits, [1])
    t.is(server.closes(), 1)
  }
})

test('a SIGTERM after a SIGINT is not taken for a repetition by npm', t => {
  const server = running()
  server.send('SIGINT')
  server.send('SIGTERM')
  t.deepEqual(server.exits, [1])
})

test('the SIGINT that npm repeats does not count as a second signal', t => {
  const server = running()
  server.send('SIGINT')
  server.pass(5)
  server.send('SIGINT')
  t.deepEqual(server.exits, [])
})

test('a close that fails is reported, and the exit code is 1', async t => {
  const server = running()
  server.send('SIGTERM')
  server.finish(new Error('no luck'))
  t.is(await server.ended, 1)
  t.deepEqual(server.errors, ['The server did not stop cleanly: no luck\n'])
  await eventually(() => server.exits.length > 0)
  t.deepEqual(server.exits, [1])
})
