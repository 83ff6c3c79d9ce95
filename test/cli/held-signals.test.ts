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

test('a listener gets the signals that came before it, once', async t => {
  const { held, exits, send } = hold()
  const heard: string[] = []
  send('SIGHUP')
  send('SIGHUP')
  send('SIGTERM')
  for (const signal of ['SIGHUP', 'SIGTERM', 'SIGINT'] as const) held.onSignal(signal, () => heard.push(signal))
  t.deepEqual(heard, [], 'not before those who listen are ready')
  await eventually(() => heard.length === 2)
  t.deepEqual(heard, ['SIGHUP', 'SIGTERM'])
  send('SIGINT')
  t.deepEqual(heard, ['SIGHUP', 'SIGTERM', 'SIGINT'])
  t.deepEqual(exits, [])
})

test('a second signal to stop, with nobody listening yet, ends the process', t => {
  const { exits, send } = hold()
  send('SIGINT')
  send('SIGHUP')
  t.deepEqual(exits, [])
  send('SIGTERM')
  t.deepEqual(exits, [1])
})

test('a released signal is left to the system', t => {
  const { held, send } = hold()
  held.release()
  t.false(send('SIGTERM'))
})
