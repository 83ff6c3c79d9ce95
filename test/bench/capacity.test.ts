import test from 'ava'
import { readText, repository } from '../helpers/repository.js'

// The benchmark is JavaScript without declarations.
const { costsOf, loadOf, memoryOf, mostReplicas, mostSessions, restoreOf, sharesOf } = await import(
  `${repository}bench/capacity/model.js`
)
const { fillTables, tablesOf } = await import(`${repository}bench/capacity/page.js`)

const REQUEST = { commands: 1, received: 200, sent: 20, redisMicros: 10 }
const REFRESH = { commands: 4, received: 7000, sent: 60, redisMicros: 100 }
const STORED_REQUEST = { commands: 1, received: 200, sent: 3000, redisMicros: 20 }
const COSTS = {
  stores: {
    cookie: { request: REQUEST, refresh: REFRESH },
    redis: { request: STORED_REQUEST, refresh: REFRESH }
  },
  logout: { commands: 2, received: 400, sent: 0, redisMicros: 20 },
  delivery: { sent: 150, redisMicros: 3 },
  process: { commands: 0.1, received: 1, sent: 2, connections: 2 },
  sessionBytes: 3200
}
const BEHAVIOUR = {
  secondsBetweenRequests: 10,
  secondsBetweenRefreshes: 1000,
  secondsBetweenLogouts: 2000,
  callsPerRefresh: 2
}
const DEPLOYMENT = { replicas: 100, sessions: 10_000, store: 'cookie', nodes: 1 }
const LIMITS = { cores: 1, received: 1e6, sent: 1e6, connections: 1000 }

test('the load of Redis is the sum of all events, and with sessions in Redis it sends and stores every session', t => {
  // 1,000 requests, 10 refreshes and 5 logouts a second.
  const load = loadOf(DEPLOYMENT, COSTS, BEHAVIOUR)
  t.is(load.commands, 1000 + 40 + 10 + 10)
  t.is(load.received, 200_000 + 70_000 + 2000 + 100)
  t.is(load.sent, 20_000 + 600 + 500 * 150 + 200)
  t.is(load.deliveries, 500)
  t.is(load.cores, (10_000 + 1000 + 100 + 1500) / 1e6)
  t.is(load.connections, 200)
  t.is(load.memory, 10_000 * 3200)
  t.is(load.tokenCalls, 1200)
  const withSessions = loadOf({ ...DEPLOYMENT, store: 'redis' }, COSTS, BEHAVIOUR)
  t.is(withSessions.sent, 3_000_000 + 600 + 500 * 150 + 200)
  t.is(withSessions.memory, 10_000 * 3200)
})

test('entries of users who have left stay for two days, and are smaller after a logout', t => {
  const { entries, loggedOut, closed } = memoryOf({ sessions: 1000, nodes: 1 }, COSTS, {
    ...BEHAVIOUR,
    secondsBetweenLogouts: 86_400
  })
  t.is(entries, 3000)
  t.is(loggedOut, 1000 * 3200 + 2000 * 320)
  t.is(closed, 3000 * 3200)
})

test('the masters of a cluster share scripts and memory, and each one passes all messages on', t => {
  const one = loadOf(DEPLOYMENT, COSTS, BEHAVIOUR)
  const four = loadOf({ ...DEPLOYMENT, nodes: 4 }, COSTS, BEHAVIOUR)
  t.is(four.memory, one.memory / 4)
  t.is(four.deliveries, one.deliveries / 4)
  t.is(four.cores, (11_100 / 4 + (125 + 15) * 3) / 1e6)
  // A process has one connection to each master, and one for messages to any of them.
  t.is(four.connections, 125)
  t.is(four.tokenCalls, one.tokenCalls)
})

test('after a loss, each process stores again what browsers have sent to it in the last minute', t => {
  // 10 refreshes and 1,000 requests a second. A script takes 25 microseconds, and its 100 messages 3 each.
  const restored = restoreOf(DEPLOYMENT, COSTS, BEHAVIOUR)
  t.is(restored.scripts, 60_600)
  t.is(Math.round(restored.seconds * 1000), 19_695)
  const stored = restoreOf({ ...DEPLOYMENT, store: 'redis' }, COSTS, BEHAVIOUR)
  t.is(stored.scripts, 600)
})

test('the limit that is reached first comes first', t => {
  const load = { cores: 0.5, received: 9e5, sent: 1e5, connections: 10 }
  t.deepEqual(sharesOf(load, LIMITS), [
    ['received', 0.9],
    ['cores', 0.5],
    ['sent', 0.1],
    ['connections', 0.01]
  ])
})

test('the largest number of sessions just fits into all limits', t => {
  for (const store of ['cookie', 'redis']) {
    const sessions = mostSessions({ ...DEPLOYMENT, store }, COSTS, BEHAVIOUR, LIMITS)
    const shareOf = (count: number) =>
      sharesOf(loadOf({ ...DEPLOYMENT, store, sessions: count }, COSTS, BEHAVIOUR), LIMITS)[0][1]
    t.true(shareOf(sessions) <= 1, store)
    t.true(shareOf(sessions * 1.01) > 1, store)
  }
})

test('no session fits if the replicas alone have too many connections', t => {
  t.is(mostSessions({ ...DEPLOYMENT, replicas: 501 }, COSTS, BEHAVIOUR, LIMITS), 0)
  t.is(mostReplicas(1, COSTS, LIMITS), 500)
  t.is(mostReplicas(4, COSTS, LIMITS), 800)
})

test('the bytes of a message are what each further process adds to a logout', t => {
  const step = { idle: { commands: 0.1, received: 1, sent: 2 }, connections: 2, request: REQUEST, refresh: REFRESH }
  const { delivery, logout } = costsOf({
    steps: [
      { ...step, processes: 1, logout: { ...COSTS.logout, sent: 170 } },
      { ...step, processes: 20, logout: { ...COSTS.logout, sent: 20 + 20 * 150 } }
    ],
    inRedis: { request: STORED_REQUEST, refresh: REFRESH },
    busy: {
      request: { redisMicros: 10 },
      requestOfStored: { redisMicros: 20 },
      refresh: { redisMicros: 100 },
      delivery: { redisMicros: 3 },
      sessionBytes: 3200
    }
  })
  t.is(delivery.sent, 150)
  t.is(logout.sent, 20)
})

test('a table replaces only the table after its comment, or is added with an empty line before and after it', t => {
  const page = 'Text\n\n<!-- table: one -->\n\n| old |\n| - |\n\nMore\n\n<!-- table: two -->\n\nEnd\n'
  t.is(
    fillTables(page, { one: '| new |\n' }),
    'Text\n\n<!-- table: one -->\n\n| new |\n\nMore\n\n<!-- table: two -->\n\nEnd\n'
  )
  t.is(fillTables('<!-- table: one -->\n\nEnd\n', { one: '| new |\n' }), '<!-- table: one -->\n\n| new |\n\nEnd\n')
})

test('the tables of docs/scale.md are those of the recorded figures', t => {
  const page = readText('docs/scale.md')
  const tables = tablesOf(JSON.parse(readText('bench/capacity/figures.json')))
  const missing = Object.keys(tables).filter(name => !page.includes(`<!-- table: ${name} -->\n\n|`))
  t.deepEqual(missing, [])
  t.is(fillTables(page, tables), page)
})
