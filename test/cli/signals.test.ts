import { EventEmitter } from 'node:events'
import test from 'ava'
import { holdSignals, untilStopped } from '#src/cli/commands/signals.js'
import { eventually } from '../helpers/eventually.js'
import { subscribe } from './shell.js'

/** A running server under the test's control. `send` sends it a signal, and `finish` ends its close(). */
function running(env: Readonly<Record<string, string | undefined>> = {}) {
  const signals = new EventEmitter()
  const exits: (number | 'SIGHUP')[] = []
  const errors: string[] = []
  let finish: (error?: Error) => void = () => {}
  let closes = 0
  let time = 1000
  const terminal = {
    onSignal: (signal: string, listener: () => void) => subscribe(signals, signal, listener),
    onParentEnded: (listener: () => void) => subscribe(signals, 'parent_ended', listener),
    onTerminalClosed: (listener: () => void) => subscribe(signals, 'terminal_closed', listener),
    env,
    exit: (code: number) => void exits.push(code),
    hangUp: () => void exits.push('SIGHUP'),
    stderr: { write: (text: string) => errors.push(text) }
  } as unknown as Parameters<typeof untilStopped>[0]
  const reasons: string[] = []
  const close = (reason: string) => {
    reasons.push(reason)
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
    reasons,
    finish: (error?: Error) => finish(error),
    send: (signal: string) => signals.emit(signal),
    pass: (ms: number) => {
      time += ms
    },
    listeners: () =>
      ['SIGINT', 'SIGTERM', 'parent_ended', 'terminal_closed'].reduce(
        (sum, name) => sum + signals.listenerCount(name),
        0
      )
  }
}

for (const env of [{ npm_command: 'exec' }, { npm_lifecycle_event: 'start' }]) {
  test(`a server that npm started stops when npm ends ${JSON.stringify(env)}`, async t => {
    const server = running(env)
    server.send('parent_ended')
    t.deepEqual(server.reasons, ['parent_ended'])
    server.send('parent_ended')
    t.deepEqual(server.exits, [], 'only a signal ends the process immediately')
    server.finish()
    t.is(await server.ended, 0)
    t.is(server.listeners(), 0)
  })
}

test('a server that npm did not start continues when its parent ends', t => {
  const server = running()
  server.send('parent_ended')
  t.is(server.closes(), 0)
})

const sequences: readonly (readonly [signals: readonly (string | number)[], exits: readonly number[]])[] = [
  [['SIGTERM', 500, 'SIGTERM', 500, 'SIGTERM'], []],
  [['SIGINT', 500, 'SIGTERM'], []],
  [['SIGTERM', 500, 'SIGINT'], []],
  [['SIGTERM', 500, 'SIGINT', 500, 'SIGINT'], [1]],
  [['SIGINT', 500, 'SIGINT'], [1]],
  // npm repeats SIGINT within a few milliseconds.
  [['SIGINT', 5, 'SIGINT'], []]
]

for (const [sequence, exits] of sequences) {
  const what = `${sequence.join(' ')} ${exits.length > 0 ? 'ends the process immediately with code 1' : 'shortens nothing'}`
  test(`in a shutdown, ${what}`, t => {
    const server = running()
    for (const step of sequence) typeof step === 'number' ? server.pass(step) : server.send(step)
    t.deepEqual(server.exits, [...exits])
    t.is(server.closes(), 1)
  })

  test(`during the start, ${what}`, t => {
    const { exits: found, send, pass } = hold()
    for (const step of sequence) typeof step === 'number' ? pass(step) : send(step)
    t.deepEqual(found, [...exits])
  })
}

test('if close() fails, the error is printed and the exit code is 1', async t => {
  const server = running()
  server.send('SIGTERM')
  server.finish(new Error('no luck'))
  t.is(await server.ended, 1)
  t.deepEqual(server.errors, ['The server did not stop cleanly: no luck\n'])
  await eventually(() => server.exits.length > 0)
  t.deepEqual(server.exits, [1])
})

function hold() {
  const signals = new EventEmitter()
  const exits: number[] = []
  let time = 1000
  const terminal = {
    onSignal: (signal: string, listener: () => void) => subscribe(signals, signal, listener),
    exit: (code: number) => void exits.push(code)
  }
  const held = holdSignals(terminal, () => time)
  const pass = (ms: number) => {
    time += ms
  }
  return { held, exits, pass, send: (signal: string) => signals.emit(signal) }
}

test('a new listener gets each signal that arrived before it once', async t => {
  const { held, exits, send } = hold()
  const heard: string[] = []
  send('SIGHUP')
  send('SIGHUP')
  send('SIGTERM')
  for (const signal of ['SIGHUP', 'SIGTERM', 'SIGINT'] as const) held.onSignal(signal, () => heard.push(signal))
  t.deepEqual(heard, [], 'the signals are delivered only after the code that adds the listeners')
  await eventually(() => heard.length === 2)
  t.deepEqual(heard, ['SIGHUP', 'SIGTERM'])
  send('SIGINT')
  t.deepEqual(heard, ['SIGHUP', 'SIGTERM', 'SIGINT'])
  t.deepEqual(exits, [])
})

test('after release() signals have their default effect', t => {
  const { held, send } = hold()
  held.release()
  t.false(send('SIGTERM'))
})
