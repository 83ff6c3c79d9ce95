// Makes every call of an SDK twice: directly to the platform, and through the server. Both must send the same requests and have
// the same result.
import { isDeepStrictEqual } from 'node:util'
import type { UpstreamRequest } from '../../helpers/upstream.js'
import type { Lab } from './lab.js'
import type { Site } from './site.js'

/** The token that the program has. The server replaces it by the token of the session. */
export const PROGRAM_TOKEN = 'a-token-of-the-program'

export interface Call {
  readonly name: string
  run(origin: string): unknown
}

/**
 * Returns a call of each public method of a client, with arguments by the names of the parameters.
 * @param create makes a client of the API at an origin
 * @param values the arguments by `parameter` or `method.parameter`; a function makes a new value for each call. Others are texts, or
 *   objects if the name ends with `Payload`
 */
export function callsOf(
  label: string,
  create: (origin: string) => object,
  values: Readonly<Record<string, unknown>>
): Call[] {
  const prototype = Object.getPrototypeOf(create('http://127.0.0.1')) as Record<string, (...args: unknown[]) => unknown>
  const names = Object.getOwnPropertyNames(prototype).filter(name => !/^_|^(constructor|reset|getBaseUrl)$/.test(name))
  return names.map(name => ({
    name: `${label}.${name}`,
    run(origin) {
      const args = parametersOf(prototype[name]).map(parameter => {
        const usual = parameter.endsWith('Payload') ? { data: { type: parameter } } : parameter
        const value = values[`${name}.${parameter}`] ?? values[parameter] ?? usual
        return typeof value === 'function' ? value() : value
      })
      return (create(origin) as typeof prototype)[name]?.(...args)
    }
  }))
}

function parametersOf(method: unknown): string[] {
  const [, list = ''] = /^[^(]*\((.*?)\)\s*\{/s.exec(String(method)) ?? []
  return list
    .split(',')
    .map(parameter => parameter.replace(/=.*/, '').trim())
    .filter(parameter => parameter !== '')
}

/** @param cookieCalls the calls that need cookies of the platform, which the server gives to nobody: their requests arrive, and they fail */
export async function compareCalls(lab: Lab, { platform, url }: Site, calls: readonly Call[], cookieCalls: RegExp) {
  let working = 0
  for (const call of calls) {
    const direct = await perform(platform, platform.origin, call)
    const proxied = await perform(platform, url, call)
    const isWorking = isDeepStrictEqual(proxied, direct)
    if (isWorking) working++
    if (cookieCalls.test(call.name)) {
      lab.check(`${call.name} fails without cookies of the platform`, 'error' in proxied, true)
    } else if ('error' in direct) lab.check(`${call.name} works without the server`, direct, 'a result')
    else lab.check(call.name, proxied, direct)
  }
  lab.note(`${working} of ${calls.length} calls work`)
  const tokens = platform.requests.flatMap(({ headers }) => (headers('via').length > 0 ? headers('authorization') : []))
  lab.check(
    'the platform gets the token of the session only',
    new Set(tokens).size === 1 && !tokens.includes(`Bearer ${PROGRAM_TOKEN}`),
    true
  )
}

/** Makes a call. Returns its result or its error, and the requests that have arrived at the platform. */
async function perform({ requests }: Site['platform'], origin: string, { run }: Call) {
  const before = requests.length
  const outcome = await Promise.resolve()
    .then(() => run(origin))
    .then(plain)
    .then(
      result => ({ result }),
      (error: Error) => ({ error: error.message })
    )
  const described = await Promise.all(requests.slice(before).map(describe))
  // Requests that an SDK sends in parallel arrive in any order.
  return { ...outcome, requests: described.sort((a, b) => (a.line < b.line ? -1 : 1)) }
}

/** What the API acts upon. The vendor's SDK makes a new x-ads-request-id, and an If-None-Match with a random number, for each call. */
async function describe({ method, url, rawHeaders, body }: UpstreamRequest) {
  const relevant = /^(accept|content-type|content-range|if-.*|range|region|user-agent|x-ads-(?!request-id).*)$/i
  const headers = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 && relevant.test(name)
      ? [`${name.toLowerCase()}: ${rawHeaders[index + 1]}`.replace(/: 0\.\d+:/, ': a number:')]
      : []
  )
  return { line: `${method} ${url.replace(/^\/+/, '/')}`, headers: headers.sort(), body: String(await body()) }
}

/** Reads a result to its end, and returns it without the objects of the HTTP client. */
async function plain(result: unknown): Promise<unknown> {
  if (typeof result !== 'object' || result === null) return result
  if (Buffer.isBuffer(result)) return result.toString('base64')
  if (Symbol.asyncIterator in result) {
    const parts: unknown[] = []
    for await (const part of result as AsyncIterable<unknown>) parts.push(await plain(part))
    return parts
  }
  if ('content' in result) return plain(result.content)
  if ('config' in result && 'data' in result) return plain(result.data)
  return result
}
