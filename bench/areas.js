/** Divides the CPU time of a profile into areas that a reader can name without knowing the functions. */

const GOT_PACKAGES =
  /^(?:got|p-cancelable|@szmarczak\/http-timer|@sindresorhus\/is|cacheable-lookup|cacheable-request|form-data-encoder|lowercase-keys|responselike|normalize-url|http2-wrapper|decompress-response|get-stream|type-fest)\//
const KOA_PACKAGES =
  /^(?:koa|@koa\/|koa-|delegates|cookies|http-errors|accepts|negotiator|type-is|content-type|content-disposition|statuses|mime-types|parseurl|on-finished|encodeurl|escape-html|fresh|vary|depd|path-to-regexp)/

/**
 * The areas, each with the files that belong to it. A sample counts for the innermost function that belongs to an area, so the
 * time of Node's `emit` counts for its caller.
 * @type {readonly [area: string, files: RegExp][]}
 */
const AREAS = [
  ['encryption of cookies and records', /^dist\/session\/|^node:internal\/crypto\//],
  ['log lines (pino)', /^(?:pino|sonic-boom|quick-format-unescaped|fast-redact|safe-stable-stringify)|^dist\/log\.js/],
  ['Redis client (ioredis)', /^(?:ioredis|@ioredis\/|redis-parser|denque|standard-as-callback|cluster-key-slot)/],
  ['HTTP client: got', GOT_PACKAGES],
  ['HTTP client: Node', /^node:_http_(?:client|agent)|^node:https|^undici\//],
  ['our calls to the provider', /^dist\/provider\//],
  ['our session store', /^dist\/store\//],
  ['our refresh and modes', /^dist\/(?:refresh|modes|login)\//],
  ['HTTP server: Koa', KOA_PACKAGES],
  ['HTTP server: our middleware', /^dist\/(?:http|proxy|gateway|auth|app|server|services|metrics)/],
  ['HTTP server: Node', /^node:_http_server/]
]

/** Areas for functions of which no caller belongs to an area above. */
const NODE_AREAS = [
  ['sockets and HTTP parser of Node', /^node:(?:_http_|net|internal\/streams|stream|internal\/stream_base|dns|events)/],
  ['timers and promises of Node', /^node:(?:internal\/(?:timers|process)|timers|async_hooks|diagnostics_channel)/]
]

// The names of V8 for its own work.
const OWN_WORK = new Map([
  ['(garbage collector)', 'garbage collection'],
  ['(program)', 'native code outside of all functions']
])
const REST = 'everything else'

/**
 * Returns the share of each area, the largest first, and the function with the most CPU time in it. The time in which the
 * process was idle is not counted.
 * @param {{ nodes: object[], samples: number[], timeDeltas: number[] }} profile
 */
export function areasOf({ nodes, samples, timeDeltas }) {
  const areas = areasOfNodes(nodes)
  const names = new Map(nodes.map(({ id, callFrame }) => [id, callFrame.functionName || '(anonymous)']))
  const found = new Map()
  let total = 0
  for (const [index, id] of samples.entries()) {
    const area = areas.get(id)
    if (area === undefined) continue
    const { functions, micros } = found.get(area) ?? { functions: new Map(), micros: 0 }
    functions.set(names.get(id), (functions.get(names.get(id)) ?? 0) + timeDeltas[index])
    found.set(area, { functions, micros: micros + timeDeltas[index] })
    total += timeDeltas[index]
  }
  return [...found]
    .map(([area, { functions, micros }]) => ({ area, share: micros / total, example: largest(functions) }))
    .sort((a, b) => b.share - a.share)
}

/**
 * Returns the path of a file below `node_modules`, or below the folder of this project.
 * @param {string} url
 */
export function fileOf(url) {
  return url.replace(/^file:\/\/.*\/node_modules\//, '').replace(/^file:\/\/.*?\/(?=(?:dist|bench)\/)/, '')
}

function largest(functions) {
  return [...functions].reduce((most, one) => (one[1] > most[1] ? one : most))[0]
}

/** Returns the area of each function call in the tree, or undefined for the idle process. */
function areasOfNodes(nodes) {
  const areas = new Map()
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map(child => [child, id])))
  // A parent comes before its children.
  for (const { id, callFrame } of nodes) {
    const { functionName, url } = callFrame
    if (functionName === '(idle)') continue
    const file = fileOf(url)
    const own = OWN_WORK.get(functionName) ?? areaOf(AREAS, file)
    const ofCaller = areas.get(parents.get(id))
    const isVague = ofCaller === undefined || ofCaller === REST
    areas.set(id, own ?? (isVague ? areaOf(NODE_AREAS, file) : undefined) ?? ofCaller ?? REST)
  }
  return areas
}

function areaOf(areas, file) {
  return areas.find(([, files]) => files.test(file))?.[0]
}
