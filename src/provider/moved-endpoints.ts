/**
 * Decides when a later reading of the discovery document replaces the earlier one. Some providers build the document from the Host
 * header, and a cache may keep such a document for everybody. One poisoned reading must not send tokens and the client secret elsewhere.
 */

/** A reading that does not count yet. */
export interface Candidate {
  readonly text: string
  /** When it was read for the first time, in milliseconds. */
  readonly since: number
}

const ENDPOINTS = [
  'authorizationEndpoint',
  'tokenEndpoint',
  'userinfoEndpoint',
  'revocationEndpoint',
  'endSessionEndpoint',
  'jwksUri'
] as const

type Endpoints = { readonly [Name in (typeof ENDPOINTS)[number]]: string | undefined } & {
  readonly tokenEndpoint: string
}

interface Circumstances {
  /** The candidate of the previous reading. */
  readonly earlier: Candidate | undefined
  /** When the new reading began, in milliseconds. */
  readonly now: number
  /** True if the last request to the old token endpoint showed that it may have moved. */
  readonly tokenFails: boolean
}

// A cache may return the same poisoned document again and again, but seldom for so long.
const AGREEMENT_MS = 600_000

/**
 * Returns undefined if the new reading counts, and otherwise the candidate to remember. A token endpoint on another origin counts only
 * if the old one fails. This, any other origin that is new, and an endpoint that is gone need two readings that agree, 10 minutes apart.
 */
export function candidateOf(old: Endpoints, read: Endpoints, { earlier, now, tokenFails }: Circumstances) {
  const known = new Set(ENDPOINTS.map(name => originOf(old[name])))
  const isMoved = originOf(old.tokenEndpoint) !== originOf(read.tokenEndpoint)
  const isNew = ENDPOINTS.some(name =>
    read[name] === undefined ? old[name] !== undefined : !known.has(originOf(read[name]))
  )
  if (!isMoved && !isNew) return undefined
  const text = JSON.stringify(read)
  const candidate = earlier?.text === text ? earlier : { text, since: now }
  const isAgreed = now - candidate.since >= AGREEMENT_MS
  return isAgreed && (tokenFails || !isMoved) ? undefined : candidate
}

function originOf(url: string | undefined): string | undefined {
  return url === undefined ? undefined : new URL(url).origin
}

/** True if a request to an endpoint with this status shows that the endpoint may have moved. */
export function mayHaveMoved(status: number): boolean {
  return (status >= 300 && status < 400) || status === 404 || status === 405 || status === 410
}
