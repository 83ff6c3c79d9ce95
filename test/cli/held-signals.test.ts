import { EventEmitter } from 'node:events'
import test from 'ava'
import { holdSignals } from '#src/cli/held-signals.js'
import { eventually } from '../helpers/eventually.js'

function hold() {
  const signals = new EventEmitter()
  const exits: number[] = []
  const held = holdSignals({
    onSignal(signal, listener) {
      signals.on(signal, listener)
      return () => void signals.off(signal, listener)
    },
    exit: code => void exits.push(code)
  })
  return { held, exits, send: (signal: string) => signals.emit(signal) }
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

test('a second signal to stop ends the process even if no listener was added yet', t => {
  const { exits, send } = hold()
  send('SIGINT')
  send('SIGHUP')
  t.deepEqual(exits, [])
  send('SIGTERM')
  t.deepEqual(exits, [1])
})

test('after release() signals have their default effect', t => {
  const { held, send } = hold()
  held.release()
  t.false(send('SIGTERM'))
})
