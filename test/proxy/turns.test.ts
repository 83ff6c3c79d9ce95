import test from 'ava'
import { BusyError, createTurns } from '#src/proxy/turns.js'

const limits = { waitingForHead: 2, inLine: 1, ofOneSession: 3 }
const patient = 60_000
const host = 'https://a.example'

test('when as many requests of a host wait for a response head as allowed, the next request waits in line, and one after it is rejected', async t => {
  const turns = createTurns(limits)
  const first = turns.take(host, '1')
  turns.take(host, '2')
  const third = turns.take(host, '3')
  t.true(first.hasCome())
  t.false(third.hasCome())
  t.throws(() => turns.take(host, '4'), { instanceOf: BusyError })
  t.true(turns.take('https://b.example', '5').hasCome())
  const waiting = third.wait(patient)
  first.headCame()
  t.true(await waiting)
  t.true(third.hasCome())
})

test('a request that has ended is not counted any more, even if its end is reported twice', async t => {
  const turns = createTurns(limits)
  const first = turns.take(host, '1')
  turns.take(host, '2')
  first.headCame()
  first.end()
  first.end()
  t.true(turns.take(host, '3').hasCome())
  t.false(turns.take(host, '4').hasCome())
})

test('a request is rejected when its time in line is over, and its place in line is free again', async t => {
  const turns = createTurns(limits)
  turns.take(host, '1')
  turns.take(host, '2')
  await t.throwsAsync(turns.take(host, '3').wait(1), { instanceOf: BusyError })
  t.notThrows(() => turns.take(host, '3'))
})

test('the limit of a session counts requests and responses in progress, and other sessions are not affected', t => {
  const turns = createTurns({ ...limits, waitingForHead: 10 })
  const taken = [1, 2, 3].map(() => turns.take(host, '1'))
  for (const turn of taken) turn.headCame()
  t.throws(() => turns.take(host, '1'), { instanceOf: BusyError })
  t.notThrows(() => turns.take(host, '2'))
  taken[0]?.end()
  t.notThrows(() => turns.take(host, '1'))
})

test('a request that is aborted in line gives up its place', async t => {
  const turns = createTurns(limits)
  const first = turns.take(host, '1')
  turns.take(host, '2')
  const leaving = turns.take(host, '3')
  const left = leaving.wait(patient)
  leaving.end()
  t.false(await left)
  const next = turns.take(host, '4')
  first.end()
  t.true(next.hasCome())
})
