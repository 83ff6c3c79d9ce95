/**
 * Writes the tables of docs/scale.md. `figures.json` has the measured and the simulated figures of the last recorded run,
 * and `model.js` computes the other figures from them.
 */
import { table } from '../report.js'
import { BEHAVIOUR, costsOf, loadOf, memoryOf, mostReplicas, mostSessions, restoreOf, sharesOf } from './model.js'

const KIBIBYTE = 1024
const GIBIBYTE = 2 ** 30

/** The names of the limits in the tables. */
const LIMIT_NAMES = {
  cores: 'one core of Redis',
  received: 'network, to Redis',
  sent: 'network, from Redis',
  connections: 'connections'
}

const DEPLOYMENTS = [
  { replicas: 100, sessions: 100_000, nodes: 1 },
  { replicas: 100, sessions: 1_000_000, nodes: 1 },
  { replicas: 1000, sessions: 100_000, nodes: 1 },
  { replicas: 1000, sessions: 1_000_000, nodes: 1 }
]
const LARGE = { replicas: 1000, sessions: 1_000_000 }
const NODES = [1, 3, 12]
const REQUEST_PERIODS = [60, 10, 5]

/**
 * Returns the tables by their names.
 * @param {Record<string, any>} figures the contents of figures.json
 * @returns {Record<string, string>}
 */
export function tablesOf({ replicas, loss, quota, perCore }) {
  const costs = replicas && costsOf(replicas)
  return {
    ...(replicas && {
      processes: processesTable(replicas),
      'busy-redis': busyTable(replicas),
      'one-redis': oneRedisTable(costs),
      sensitivity: sensitivityTable(costs, replicas.sparse),
      memory: memoryTable(costs),
      deployments: deploymentsTable(costs),
      cluster: clusterTable(costs),
      restore: restoreTable(costs)
    }),
    ...(loss && { loss: lossTable(loss) }),
    ...(quota && { quota: quotaTable(quota) }),
    ...(perCore && { 'per-core': perCoreTable(perCore) })
  }
}

/**
 * Replaces the tables in a page, or adds them. Each one stands after a comment `<!-- table: NAME -->` and an empty line.
 * @param {string} page
 * @param {Record<string, string>} tables
 */
export function fillTables(page, tables) {
  return page.replace(/(<!-- table: ([a-z-]+) -->\n)(?:\n(?:\|.*\n)+)?/g, (whole, comment, name) =>
    name in tables ? `${comment}\n${tables[name]}` : whole
  )
}

function processesTable({ steps }) {
  const head = ['', ...steps.map(({ processes }) => (processes === 1 ? '1 process' : `${processes} processes`))]
  const row = (name, cell) => [name, ...steps.map(cell)]
  return table(head, [
    row('connections of one process', ({ connections }) => rounded(connections)),
    row('bytes from Redis a second to an idle process', ({ idle }) => rounded(idle.sent)),
    row('refreshes a second, reached', ({ refresh }) => Math.round(refresh.rate)),
    row('**one request**: scripts', ({ request }) => rounded(request.scripts)),
    row('bytes to Redis', ({ request }) => Math.round(request.received)),
    row('bytes from Redis', ({ request }) => Math.round(request.sent)),
    row('CPU us of Redis', ({ request }) => Math.round(request.redisMicros)),
    row('CPU us of the servers', ({ request }) => Math.round(request.serverMicros)),
    row('**one refresh**: scripts', ({ refresh }) => rounded(refresh.scripts)),
    row('bytes to Redis', ({ refresh }) => Math.round(refresh.received)),
    row('bytes from Redis', ({ refresh }) => Math.round(refresh.sent)),
    row('CPU us of Redis', ({ refresh }) => Math.round(refresh.redisMicros)),
    row('CPU us of the servers', ({ refresh }) => Math.round(refresh.serverMicros)),
    row('messages to each process', ({ refresh }) => rounded(refresh.published ?? 0)),
    row('**one logout**: scripts', ({ logout }) => rounded(logout.scripts)),
    row('messages to each process', ({ logout }) => rounded(logout.published)),
    row('bytes from Redis', ({ logout }) => Math.round(logout.sent))
  ])
}

function busyTable({ busy }) {
  const names = {
    request: 'request, session in the cookie',
    requestOfStored: 'request, `session.store: redis`',
    refresh: 'refresh in dual mode',
    delivery: 'delivery of a message to one process'
  }
  const cells = Object.entries(names).map(([name, text]) => [
    text,
    busy[name].redisMicros.toFixed(1),
    `${Math.round(busy[name].busy * 100)}%`,
    thousands(1e6 / busy[name].redisMicros)
  ])
  return table(['', 'CPU us of Redis', 'core busy', 'a second on one core'], cells)
}

function oneRedisTable(costs) {
  const stores = [
    ['in cookies', 'cookie'],
    ['in Redis', 'redis']
  ]
  const cells = stores.flatMap(([text, store]) =>
    [100, 1000].map(replicas => {
      const sessions = mostSessions({ replicas, store, nodes: 1 }, costs)
      const load = loadOf({ replicas, sessions, store, nodes: 1 }, costs)
      const [[limit]] = sharesOf(load)
      return [
        `sessions ${text}, ${replicas} replicas`,
        roughly(sessions),
        roughly(sessions / BEHAVIOUR.secondsBetweenRequests),
        roughly(sessions / BEHAVIOUR.secondsBetweenRefreshes),
        LIMIT_NAMES[limit],
        gibibytes(load.memory)
      ]
    })
  )
  const head = ['', 'sessions', 'requests a second', 'refreshes a second', 'limit', 'memory, GiB']
  return table(head, cells)
}

/** How many sessions one Redis carries if users are busier, or if its commands arrive one by one. */
function sensitivityTable(costs, sparse) {
  const withRequest = redisMicros => {
    const { cookie } = costs.stores
    const request = { ...cookie.request, redisMicros }
    return { ...costs, stores: { ...costs.stores, cookie: { ...cookie, request } } }
  }
  const cells = REQUEST_PERIODS.map(secondsBetweenRequests => {
    const behaviour = { ...BEHAVIOUR, secondsBetweenRequests }
    const most = of => roughly(mostSessions({ replicas: 100, store: 'cookie', nodes: 1 }, of, behaviour))
    return [`${secondsBetweenRequests} s`, most(costs), ...(sparse ? [most(withRequest(sparse.redisMicros))] : [])]
  })
  const head = [
    'a request of each user in',
    'sessions, busy Redis',
    ...(sparse ? ['sessions, sparse connections'] : [])
  ]
  return table(head, cells)
}

function memoryTable(costs) {
  const cells = [100_000, 1_000_000].map(sessions => {
    const { entries, loggedOut, closed } = memoryOf({ sessions, nodes: 1 }, costs)
    return [
      thousands(sessions),
      gibibytes(sessions * costs.sessionBytes),
      thousands(entries),
      gibibytes(loggedOut),
      gibibytes(closed)
    ]
  })
  const head = [
    'active sessions',
    'their memory, GiB',
    'entries in Redis',
    'GiB, if all users log out',
    'GiB, if no user logs out'
  ]
  return table(head, cells)
}

function deploymentsTable(costs) {
  const head = [
    'replicas, sessions',
    'store',
    'scripts and commands a second',
    'core',
    'to Redis, MB/s',
    'from Redis, MB/s',
    'messages a second',
    'connections',
    'memory, GiB',
    'first limit',
    'token calls a minute'
  ]
  const cells = DEPLOYMENTS.flatMap(deployment =>
    ['cookie', 'redis'].map(store => {
      const load = loadOf({ ...deployment, store }, costs)
      const [[limit, share]] = sharesOf(load)
      return [
        `${thousands(deployment.replicas)}, ${thousands(deployment.sessions)}`,
        store,
        thousands(load.commands),
        percent(load.cores),
        megabytes(load.received),
        megabytes(load.sent),
        thousands(load.deliveries),
        thousands(load.connections),
        gibibytes(load.memory),
        `${LIMIT_NAMES[limit]}, ${percent(share)} of it`,
        thousands(load.tokenCalls)
      ]
    })
  )
  return table(head, cells)
}

function clusterTable(costs) {
  const head = [
    'masters',
    'store',
    'core',
    'from Redis, MB/s',
    'connections',
    'memory, GiB',
    'most sessions',
    'most replicas'
  ]
  const cells = NODES.flatMap(nodes =>
    ['cookie', 'redis'].map(store => {
      const load = loadOf({ ...LARGE, store, nodes }, costs)
      return [
        nodes,
        store,
        percent(load.cores),
        megabytes(load.sent),
        thousands(load.connections),
        gibibytes(load.memory),
        roughly(mostSessions({ replicas: LARGE.replicas, store, nodes }, costs)),
        thousands(mostReplicas(nodes, costs))
      ]
    })
  )
  return table(head, cells)
}

function restoreTable(costs) {
  const head = ['replicas, sessions', 'store', 'scripts', 'they take']
  const cells = DEPLOYMENTS.flatMap(deployment =>
    ['cookie', 'redis'].map(store => {
      const { scripts, seconds } = restoreOf({ ...deployment, store }, costs)
      return [
        `${thousands(deployment.replicas)}, ${thousands(deployment.sessions)}`,
        store,
        thousands(scripts),
        `${thousands(seconds)} s`
      ]
    })
  )
  return table(head, cells)
}

function lossTable(runs) {
  const head = [
    'replicas, sessions',
    'half restored after',
    'all restored after',
    'all replicas can use Redis after',
    'times one could not',
    'scripts',
    'reads',
    'commands in the busiest second',
    'lost logins'
  ]
  const cells = runs.map(run => [
    `${thousands(run.replicas)}, ${thousands(run.sessions)}`,
    seconds(run.halfSeconds),
    seconds(run.allSeconds),
    seconds(run.usableSeconds),
    thousands(run.outages),
    thousands(run.scripts),
    thousands(run.reads),
    thousands(run.mostCommands),
    run.lostLogins
  ])
  return table(head, cells)
}

function quotaTable(runs) {
  const head = [
    'replicas, sessions due in one minute',
    'calls a minute',
    'waiting after 1 minute',
    'after 5 minutes',
    'all refreshed after',
    'calls',
    'answered with 429',
    'messages',
    'responses with 503',
    'lost logins'
  ]
  const cells = runs.map(({ replicas, sessions, callsPerMinute, observedMinutes, result }) => [
    `${thousands(replicas)}, ${thousands(sessions)}`,
    thousands(callsPerMinute),
    thousands(result.waiting[0] ?? 0),
    thousands(result.waiting[4] ?? 0),
    result.minutes === undefined ? `more than ${observedMinutes} min` : `${result.minutes} min`,
    thousands(result.calls),
    thousands(result.rejected),
    thousands(result.messages),
    thousands(result.delayed),
    result.lostLogins
  ])
  return table(head, cells)
}

/** @param {import('../per-core.js').PerCoreRow[]} rows */
function perCoreTable(rows) {
  const head = ['', 'req/s on a core', 'CPU us/req', 'Redis CPU us/req', 'MiB', 'req/s for each MiB', 'token calls/req']
  const cells = rows.flatMap((row, index) => {
    const isFirst = row.kind !== rows[index - 1]?.kind
    return isFirst ? [[`**${row.kind}**`, ...Array(head.length - 1).fill('')], perCoreCells(row)] : [perCoreCells(row)]
  })
  return table(head, cells)

  function perCoreCells({ name, cpuMicros, redisMicros, mebibytes, calls, missing }) {
    if (missing) return [`${name}: ${missing}`, ...Array(head.length - 1).fill('')]
    const rate = 1e6 / cpuMicros
    const redis = redisMicros === undefined ? '' : Math.round(redisMicros)
    return [
      name,
      thousands(rate),
      Math.round(cpuMicros),
      redis,
      Math.round(mebibytes),
      Math.round(rate / mebibytes),
      rounded(calls)
    ]
  }
}

function seconds(value) {
  return `${value.toFixed(1)} s`
}

function rounded(value) {
  return String(Math.round(value * 10) / 10)
}

function percent(share) {
  return share < 0.01 ? '< 1%' : `${Math.round(share * 100)}%`
}

function thousands(value) {
  return Math.round(value).toLocaleString('en-US')
}

/** A computed number is not more exact than the measured costs. */
function roughly(value) {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 2 })
}

function megabytes(bytes) {
  const value = bytes / 1e6
  return value < 10 ? value.toFixed(1) : String(Math.round(value))
}

function gibibytes(bytes) {
  const value = bytes / GIBIBYTE
  return value < 1 / KIBIBYTE ? '0' : value.toFixed(2)
}
