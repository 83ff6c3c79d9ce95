/** Divides the CPU time of a profile into parts that a reader can name without knowing the functions. */

/**
 * The parts, each with the files that belong to it. A sample counts for the innermost function that belongs to a part, so the
 * time of `emit` or of a promise counts for its caller.
 * @type {readonly [part: string, files: RegExp][]}
 */
const PARTS = [
  [
    'http: Node, and writing to the socket',
    /^node:(?:_http_(?:server|incoming|outgoing|common)|net|internal\/stream_base)/
  ],
  ['router', /^(?:@koa\/router|path-to-regexp)\//],
  [
    'koa',
    /^(?:koa|koa-compose|koa-session|koa-static|koa-send|delegates|cookies|keygrip|http-errors|accepts|negotiator|type-is|media-typer|content-type|content-disposition|statuses|mime-types|mime-db|parseurl|on-finished|ee-first|encodeurl|escape-html|fresh|vary|depd|destroy)\//
  ],
  ['store: sessions, and their refresh', /^dist\/sessions\//],
  ['cookie: reading, encryption', /^dist\/cookie\/|^node:internal\/crypto\//],
  ['login: modes', /^dist\/login\//],
  ['web: routes, middleware, proxy', /^dist\/web\//],
  [
    'log: pino and log lines',
    /^(?:pino|sonic-boom|quick-format-unescaped|safe-stable-stringify)\/|^dist\/server\/log\.js/
  ],
  ['base: metrics, traces, tools', /^dist\/base\/|^prom-client\//],
  ['start, services and the rest of dist/', /^dist\/(?!provider\/)/],
  ['provider: checks, limits, queue', /^dist\/provider\//],
  [
    'provider: got',
    /^(?:got|p-cancelable|@szmarczak\/http-timer|@sindresorhus\/is|cacheable-lookup|cacheable-request|form-data-encoder|lowercase-keys|responselike|normalize-url|http2-wrapper|decompress-response|get-stream)\//
  ],
  ['provider: HTTP client of Node', /^node:(?:_http_(?:client|agent)|https)|^undici\//],
  ['redis: ioredis', /^(?:ioredis|@ioredis\/commands|redis-parser|denque|standard-as-callback|cluster-key-slot)\//]
]

/** For functions of which no caller belongs to a part. */
const VAGUE_PARTS = [
  [
    'timers, promises and events of Node',
    /^node:(?:internal\/(?:timers|process|streams)|timers|async_hooks|events|stream)/
  ]
]

// The names of V8 for its own work.
const OWN_WORK = new Map([
  ['(garbage collector)', 'garbage collection'],
  ['(program)', 'native code outside of all functions']
])
const REST = 'everything else'
/** The time without requests, and that of the profiler itself, which starts and ends in this function of Node's inspector. */
const NOT_COUNTED = new Set(['(idle)', 'dispatch '])
const ROOT = new URL('..', import.meta.url).href

/**
 * Returns the share of each part, the largest first, and the function with the most CPU time in it. The time in which the
 * process was idle is not counted.
 * @param {{ nodes: object[], samples: number[], timeDeltas: number[] }} profile
 */
export function partsOf({ nodes, samples, timeDeltas }) {
  const parts = partsOfNodes(nodes)
  const names = new Map(nodes.map(({ id, callFrame }) => [id, callFrame.functionName || '(anonymous)']))
  const found = new Map()
  let total = 0
  for (const [index, id] of samples.entries()) {
    const part = parts.get(id)
    if (part === undefined) continue
    const { functions, micros } = found.get(part) ?? { functions: new Map(), micros: 0 }
    functions.set(names.get(id), (functions.get(names.get(id)) ?? 0) + timeDeltas[index])
    found.set(part, { functions, micros: micros + timeDeltas[index] })
    total += timeDeltas[index]
  }
  return [...found]
    .map(([part, { functions, micros }]) => ({ part, share: micros / total, example: largest(functions) }))
    .sort((a, b) => b.share - a.share)
}

/**
 * Returns the path of a file below `node_modules`, or below the folder of this project.
 * @param {string} url
 */
export function fileOf(url) {
  return url.replace(/^.*\/node_modules\//, '').replace(ROOT, '')
}

/** @param {{ functionName: string, url: string }} callFrame */
export function isNotCounted({ functionName, url }) {
  return NOT_COUNTED.has(functionName) || NOT_COUNTED.has(`${functionName} ${url}`)
}

function largest(functions) {
  return [...functions].reduce((most, one) => (one[1] > most[1] ? one : most))[0]
}

/** Returns the part of each function call in the tree, or undefined for the idle process. */
function partsOfNodes(nodes) {
  const parts = new Map()
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map(child => [child, id])))
  // A parent comes before its children.
  for (const { id, callFrame } of nodes) {
    const { functionName, url } = callFrame
    if (isNotCounted(callFrame)) continue
    const file = fileOf(url)
    const own = OWN_WORK.get(functionName) ?? partOf(PARTS, file)
    const ofCaller = parts.get(parents.get(id))
    const isVague = ofCaller === undefined || ofCaller === REST
    parts.set(id, own ?? (isVague ? partOf(VAGUE_PARTS, file) : undefined) ?? ofCaller ?? REST)
  }
  return parts
}

function partOf(parts, file) {
  return parts.find(([, files]) => files.test(file))?.[0]
}
