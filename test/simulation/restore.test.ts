import test from 'ava'
import { simulateRestore } from './restore.js'

test('replicas restore all sessions of the last minute after Redis has lost its data', async t => {
  const { lost, allSeconds, outages } = await simulateRestore({ replicas: 40, sessions: 800, copies: 2 })
  t.is(lost, 0)
  t.is(outages, 0)
  t.true(allSeconds < 5, `${allSeconds} s`)
})

test('replicas restore all sessions although Redis is overloaded and cannot be used for some seconds', async t => {
  const { lost, outages } = await simulateRestore({ replicas: 600, sessions: 1200, copies: 1 })
  t.is(lost, 0)
  t.true(outages > 0)
})
