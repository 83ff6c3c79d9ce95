import test from 'ava'
import { createBook, type Fate, type Grant } from './provider.js'
import { judgeLoss } from './verdict.js'

interface History {
  readonly fate: Fate
  readonly settledAt: number
  readonly killedAt?: number
  readonly isStored?: boolean
  readonly isCutOff?: boolean
}

/** The verdict on a login whose refresh token was spent at 0 ms and used again at 5000 ms. */
function judge({ fate, settledAt, killedAt, isStored = true, isCutOff = false }: History): string {
  const book = createBook()
  const rotation = book.rotated(1, { spent: 'old', issued: 'new', caller: '0.1', askedAt: 0 })
  Object.assign(rotation, { fate, settledAt })
  book.reused({ token: 'old', caller: '1.1', at: 5000 })
  return judgeLoss(book.grants.get(1), {
    killedAt: () => killedAt,
    wasCutOff: (caller, at) => isCutOff && caller === '0.1' && at === settledAt,
    wasStored: token => token === 'new' && isStored
  }).kind
}

const histories: Readonly<Record<string, readonly [history: History, kind: string]>> = {
  "a login is lost if its token was used again after the provider's response": [
    { fate: 'responded', settledAt: 10 },
    'lost'
  ],
  'a login counts as in flight if the process could store the response only in an old master': [
    { fate: 'responded', settledAt: 10, isCutOff: true },
    'in flight'
  ],
  'a login is lost if the caller disconnected before a late response': [{ fate: 'hung up', settledAt: 10_000 }, 'lost'],
  'a login counts as in flight if the process was killed before it received the response': [
    { fate: 'hung up', settledAt: 100, killedAt: 100 },
    'in flight'
  ],
  'a login is lost if the process was killed long after it received the response': [
    { fate: 'responded', settledAt: 100, killedAt: 1000 },
    'lost'
  ],
  'a login counts as in flight if the killed process had not stored the response': [
    { fate: 'responded', settledAt: 100, killedAt: 1000, isStored: false },
    'in flight'
  ],
  'a login counts as ended if the provider never sent the response': [{ fate: 'withheld', settledAt: 10 }, 'ended']
}

for (const [title, [history, kind]] of Object.entries(histories)) {
  test(title, t => {
    t.is(judge(history), kind)
  })
}

test('a login is lost if it ended although its refresh token is still valid', t => {
  const grant: Grant = { id: 1, rotations: [], reuses: [] }
  t.is(judgeLoss(grant, { killedAt: () => 0, wasStored: () => true, wasCutOff: () => false }).kind, 'lost')
})
