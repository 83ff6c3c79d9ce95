import test from 'ava'
import { BusyError, createTurns } from '#src/proxy/turns.js'

const limits = { waitingForHead: 2, inLine: 1, ofOneSession: 3 }
const patient = 60_000
const never = new AbortController().signal
const request = (sessionId: string, origin = 'https://a.example') => ({ origin, sessionId })

test('requests of one host wait while as many as allowed wait for their head, in order', async t => {
  const turns = createTurns(limits)
  const first = await turns.take(request('1'), never, patient)
  await turns.take(request('2'), never, patient)
  let isServed = false
  const third = turns.take(request('3'), never, patient).then(turn => {
    isServed = true
    return turn
  })
  await t.throwsAsync(turns.take(request('4'), never, patient), { instanceOf: BusyError })
  await turns.take(request('5', 'https://b.example'), never, patient)
  t.false(isServed)
  first.headCame()
  await third
  t.true(isServed)
})

test('a request that ended counts no more, however often it says so', async t => {
  const turns = createTurns(limits)
  const first = await turns.take(request('1'), never, patient)
  await turns.take(request('2'), never, patient)
  first.headCame()
  first.end()
  first.end()
  await turns.take(request('3'), never, patient)
  const line = turns.take(request('4'), never, 1)
  await t.throwsAsync(line, { instanceOf: BusyError })
})

test('one session has a limit of its own, answers under way included', async t => {
  const turns = createTurns({ ...limits, waitingForHead: 10 })
  const taken = await Promise.all([1, 2, 3].map(() => turns.take(request('1'), never, patient)))
  for (const turn of taken) turn.headCame()
  await t.throwsAsync(turns.take(request('1'), never, patient), { instanceOf: BusyError })
  await turns.take(request('2'), never, patient)
  taken[0]?.end()
  await turns.take(request('1'), never, patient)
  t.pass()
})

test('who leaves the line takes no place in it', async t => {
  const turns = createTurns(limits)
  const first = await turns.take(request('1'), never, patient)
  await turns.take(request('2'), never, patient)
  const leaving = new AbortController()
  const left = turns.take(request('3'), leaving.signal, patient)
  leaving.abort(new Error('left'))
  await t.throwsAsync(left, { message: 'left' })
  const next = turns.take(request('3'), never, patient)
  first.end()
  await next
  await t.throwsAsync(turns.take(request('9'), leaving.signal, patient), { message: 'left' })
})
