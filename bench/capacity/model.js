/**
 * Computes from the measured cost of one event how much work a deployment causes for Redis, and which limit it reaches
 * first. All functions are pure. `page.js` puts the results into docs/scale.md.
 */

/**
 * What one event costs Redis.
 * @typedef {object} Cost
 * @property {number} commands
 * @property {number} received bytes that Redis receives
 * @property {number} sent bytes that Redis sends
 * @property {number} redisMicros CPU time of a busy Redis
 *
 * @typedef {object} Costs
 * @property {Record<'cookie' | 'redis', Record<'request' | 'refresh', Cost>>} stores the costs by the setting `session.store`
 * @property {Cost} logout without the delivery of its message
 * @property {{ sent: number, redisMicros: number }} delivery of one message to one process
 * @property {{ commands: number, received: number, sent: number, connections: number }} process each second
 * @property {number} sessionBytes memory for a session
 *
 * @typedef {object} Deployment
 * @property {number} replicas
 * @property {number} sessions users who are active in parallel
 * @property {'cookie' | 'redis'} store
 * @property {number} nodes masters of a Redis Cluster, or 1
 *
 * @typedef {object} Load of each node of Redis
 * @property {number} commands a second
 * @property {number} cores CPU time in each second
 * @property {number} received bytes a second
 * @property {number} sent bytes a second
 * @property {number} deliveries messages that Redis sends to processes in each second
 * @property {number} connections
 * @property {number} memory bytes
 * @property {number} tokenCalls calls of the token endpoint in each minute, of all replicas together
 */

/** What the users of the computed deployments do. */
export const BEHAVIOUR = {
  secondsBetweenRequests: 60,
  // With the margin and the spread of `init`. docs/quota-and-capacity.md explains the number.
  secondsBetweenRefreshes: 2730,
  secondsBetweenLogouts: 28_800,
  callsPerRefresh: 2
}

// This is a constant of src/sessions/process-memory.ts.
const REMEMBERED_SECONDS = 60
const SCRIPTS_OF_REFRESH = 4
/** The default of `session.inactivityTimeout`. An entry stays for twice as long after the last refresh. */
const MAX_AGE_SECONDS = 86_400
/** The memory of an entry whose session was logged out, which has no record any more (MEMORY USAGE of Redis 7). */
const LOGGED_OUT_BYTES = 320

export const LIMITS = {
  /** Redis runs commands in one thread. Above this share of a core, commands wait long for each other. */
  cores: 0.7,
  /** 1 Gbit/s in each direction. */
  received: 125e6,
  sent: 125e6,
  /** The default of `maxclients`, without the 32 connections that Redis keeps for itself. */
  connections: 10_000 - 32
}

/**
 * @param {import('../replicas.js').Replicas} measured
 * @returns {Costs}
 */
export function costsOf({ steps, inRedis, busy }) {
  const [first] = steps
  const last = steps.at(-1)
  const cost = ({ commands, received, sent }, { redisMicros }) => ({ commands, received, sent, redisMicros })
  // Each further process receives the message of a logout, too.
  const sentForEach = (last.logout.sent - first.logout.sent) / (last.processes - first.processes)
  return {
    stores: {
      cookie: { request: cost(last.request, busy.request), refresh: cost(last.refresh, busy.refresh) },
      redis: {
        request: cost(inRedis.request, busy.requestOfStored),
        // The refresh of a stored session also reads it.
        refresh: cost(inRedis.refresh, {
          redisMicros: busy.refresh.redisMicros + busy.requestOfStored.redisMicros
        })
      }
    },
    // The script of a logout does less than those of a refresh. PUBLISH itself is counted with its deliveries.
    logout: {
      commands: last.logout.commands,
      received: last.logout.received,
      sent: first.logout.sent - sentForEach * first.processes,
      redisMicros: busy.request.redisMicros * 2
    },
    delivery: { sent: sentForEach, redisMicros: busy.delivery.redisMicros },
    process: {
      commands: last.idle.commands,
      received: last.idle.received,
      sent: last.idle.sent,
      connections: last.connections
    },
    sessionBytes: busy.sessionBytes
  }
}

/**
 * @param {Deployment} deployment
 * @param {Costs} costs
 * @returns {Load}
 */
export function loadOf({ replicas, sessions, store, nodes }, costs, behaviour = BEHAVIOUR) {
  const { stores, logout, delivery, process } = costs
  const { secondsBetweenRequests, secondsBetweenRefreshes, secondsBetweenLogouts, callsPerRefresh } = behaviour
  const refreshes = sessions / secondsBetweenRefreshes
  const logouts = sessions / secondsBetweenLogouts
  const events = [
    [sessions / secondsBetweenRequests, stores[store].request],
    [refreshes, stores[store].refresh],
    [logouts, logout]
  ]
  const total = name => events.reduce((sum, [rate, cost]) => sum + rate * cost[name], 0)
  // A node of a cluster passes each message on to all other nodes, and to its own share of the processes.
  const subscribers = replicas / nodes
  const deliveries = logouts * subscribers
  const passedOn = logouts * (nodes - 1)
  const memory = sessions * costs.sessionBytes
  return {
    commands: total('commands') / nodes + replicas * process.commands,
    cores: (total('redisMicros') / nodes + (deliveries + passedOn) * delivery.redisMicros) / 1e6,
    received: (total('received') + passedOn * delivery.sent) / nodes + replicas * process.received,
    sent: (total('sent') + passedOn * delivery.sent) / nodes + deliveries * delivery.sent + replicas * process.sent,
    deliveries,
    // Each process has a connection for commands to every node, and one connection for messages to any of them.
    connections: nodes === 1 ? replicas * process.connections : replicas * (1 + 1 / nodes),
    memory: memory / nodes,
    tokenCalls: refreshes * callsPerRefresh * 60
  }
}

/**
 * Returns the work of Redis when it has lost its data, and every process stores again what it remembers of the last minute.
 * @param {Deployment} deployment
 * @param {Costs} costs
 */
export function restoreOf({ replicas, sessions, store, nodes }, costs, behaviour = BEHAVIOUR) {
  const { secondsBetweenRequests, secondsBetweenRefreshes } = behaviour
  // A session in Redis is remembered only by the process that has refreshed it. Of a session in cookies, each process also
  // remembers the newest revision that the browser has sent to it.
  const refreshes = (sessions / secondsBetweenRefreshes) * REMEMBERED_SECONDS
  const requests = (sessions / secondsBetweenRequests) * REMEMBERED_SECONDS
  const remembered = store === 'redis' ? refreshes : refreshes + Math.min(requests, sessions * replicas)
  // Each script tells all processes that the session was restored.
  const script = costs.stores.cookie.refresh.redisMicros / SCRIPTS_OF_REFRESH + replicas * costs.delivery.redisMicros
  return { scripts: remembered, seconds: (remembered * script) / 1e6 / nodes }
}

/**
 * Returns the memory of Redis with the entries that outlive their users: those of users who have logged out, or of users who
 * have closed the browser instead.
 * @param {Deployment} deployment
 * @param {Costs} costs
 */
export function memoryOf({ sessions, nodes }, { sessionBytes }, behaviour = BEHAVIOUR) {
  const outlived = (sessions * 2 * MAX_AGE_SECONDS) / behaviour.secondsBetweenLogouts
  const active = sessions * sessionBytes
  return {
    entries: sessions + outlived,
    loggedOut: (active + outlived * LOGGED_OUT_BYTES) / nodes,
    closed: (active + outlived * sessionBytes) / nodes
  }
}

/**
 * Returns how much of each limit a node of Redis has reached, the highest first.
 * @param {Load} load
 * @returns {[name: keyof typeof LIMITS, share: number][]}
 */
export function sharesOf(load, limits = LIMITS) {
  return Object.keys(limits)
    .map(name => [name, load[name] / limits[name]])
    .sort(([, a], [, b]) => b - a)
}

/**
 * Returns the largest number of sessions whose work fits into all limits, or 0 if the replicas alone exceed a limit.
 * @param {Omit<Deployment, 'sessions'>} deployment
 * @param {Costs} costs
 */
export function mostSessions(deployment, costs, behaviour = BEHAVIOUR, limits = LIMITS) {
  const none = loadOf({ ...deployment, sessions: 0 }, costs, behaviour)
  const one = loadOf({ ...deployment, sessions: 1 }, costs, behaviour)
  const bounds = Object.keys(limits).map(name => {
    const left = limits[name] - none[name]
    const each = one[name] - none[name]
    if (left < 0) return 0
    return each > 0 ? left / each : Number.POSITIVE_INFINITY
  })
  return Math.floor(Math.min(...bounds))
}

/**
 * Returns the largest number of replicas that may connect.
 * @param {number} nodes
 * @param {Costs} costs
 */
export function mostReplicas(nodes, { process }, limits = LIMITS) {
  return Math.floor(limits.connections / (nodes === 1 ? process.connections : 1 + 1 / nodes))
}
