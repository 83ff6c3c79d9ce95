import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { createFairQueue, QueueError, type Turn } from '#src/base/fair-queue.js'
import { QUEUE_LIMITS } from '#src/web/proxy/forward.js'
import { assertCases } from '../helpers/case-file.js'

const patient = 60_000

/** Runs the commands of a case in fair-queue.txt, and returns the calls that run, wait and are lost, or the order in which they run. */
async function run(commands: string, [limits = '']: readonly string[]): Promise<string> {
  const given = limits.split(', ').map(limit => limit.split(' ') as [string, string])
  const named = Object.fromEntries(given.map(([name, value]) => [name, Number(value)]))
  const queue = createFairQueue({ inProgress: 100, waiting: 1, slots: 2, ...named })
  const turns = new Map<string, Turn>()
  const lost: string[] = []
  const started: string[] = []
  const namesIn = (state: Turn['state']) => [...turns].filter(([, turn]) => turn.state === state).map(([name]) => name)
  const turnOf = (name: string) => turns.get(name) as Turn

  function enter(text: string, isUpload: boolean): void {
    const [, name = '', session = name, place = 'a'] = /^(\w+)(?:=([\w/]+))?(?:@(\w+))?$/.exec(text) ?? []
    const [user = ''] = session.split('/')
    const isUrgent = place === 'urgent'
    try {
      const turn = queue.enter({ queue: place, session, user, isUrgent, ...(isUpload && { isUploading: () => true }) })
      turns.set(name, turn)
      if (turn.state === 'inProgress') return
      queue.wait(turn, patient).then(
        hasStarted => hasStarted && started.push(name),
        error => error instanceof QueueError && lost.push(name)
      )
    } catch (error) {
      if (!(error instanceof QueueError)) throw error
      lost.push(name)
    }
  }

  for (const command of commands.split(', ')) {
    const [verb = '', name = ''] = command.split(' ')
    if (verb === 'enter' || verb === 'upload') enter(name, verb === 'upload')
    else if (verb === 'leave') queue.leave(turnOf(name))
    else if (verb === 'free') queue.freeSlot(turnOf(name))
    else if (verb === 'take') queue.takeSlot(turnOf(name))
    else if (verb === 'drain') {
      for (let [name] = namesIn('inProgress'); name !== undefined; [name] = namesIn('inProgress')) {
        queue.leave(turnOf(name))
        await setImmediate()
      }
      return `order ${started.join(' ')}`
    } else throw new Error(`unknown command ${verb}`)
    await setImmediate()
  }
  const groups = { runs: namesIn('inProgress'), waits: namesIn('waiting'), lost }
  return Object.entries(groups)
    .filter(([, names]) => names.length > 0)
    .map(([group, names]) => [group, ...names].join(' '))
    .join('; ')
}

test('the limits of a queue hold, and users and sessions take turns', t =>
  assertCases(t, 'test/base/fair-queue.txt', run))

test('a call is given up when its time is over, and its place in the queue is free again', async t => {
  const { enter, wait, length } = createFairQueue({ inProgress: 1, waiting: 1 })
  const call = (user: string) => enter({ queue: 'a', session: user, user })
  call('1')
  const turn = call('2')
  const message = new QueueError('timeout').message
  await t.throwsAsync(wait(turn, 1), { instanceOf: QueueError, message })
  t.deepEqual([turn.state, length()], ['over', 0])
  t.notThrows(() => call('3'))
})

test('the limits of the API proxy leave slots of a host for other users', t => {
  const { ofOneSession, ofOneUser, slots, ofOneQueue, inProgress } = QUEUE_LIMITS
  const ascending = [ofOneSession, ofOneUser, slots, ofOneQueue, inProgress]
  t.deepEqual(
    ascending,
    [...new Set(ascending)].sort((a, b) => a - b)
  )
})

test('an API that takes 5 s gets 100 requests a second of 100 users, and none is lost', t => {
  const queue = createFairQueue(QUEUE_LIMITS)
  const ends: Turn[][] = []
  for (let second = 0; second < 30; second++) {
    for (const turn of ends[second - 5] ?? []) queue.leave(turn)
    ends[second] = Array.from({ length: 100 }, (_, user) =>
      queue.enter({ queue: 'a', session: `${user}`, user: `${user}` })
    )
  }
  t.true(ends.flat().every(({ state }) => state !== 'waiting'))
})
