import type { Config } from '../../config/settings.js'
import { OAuthError, UpstreamError } from '../../idp/errors.js'
import { about, type Finding } from './finding.js'
import { connectionTrouble } from './trouble.js'

/** A request to the provider, in words for messages. */
export interface Asked {
  /** The finding it is for. */
  readonly check: string
  /** As a sentence begins: `The token endpoint`. */
  readonly endpoint: string
  readonly url: string
  /** Where the address was set; undefined for the built-in one. */
  readonly setting: string | undefined
  readonly timeoutSeconds: number
}

type EndpointKey = {
  [Key in keyof Config['platform']]: Key extends `${string}Endpoint` ? Key : never
}[keyof Config['platform']]

/** Which setting an endpoint's address comes from. */
export function settingOfEndpoint({ platform }: Config, key: EndpointKey): string | undefined {
  if (platform[key] !== undefined) return `platform.${key}`
  return platform.issuer === undefined ? undefined : 'platform.issuer'
}

/** What it means that a request failed in a way that has nothing to do with what was asked. */
export function findingOfError(error: unknown, asked: Asked): Finding {
  const { failed } = about(asked.check)
  const { endpoint, url, setting, timeoutSeconds } = asked
  if (error instanceof OAuthError) return findingOfStatus(error.status, asked, error.error)
  if (!(error instanceof UpstreamError)) throw error
  if (error.status !== undefined && error.status >= 300) return findingOfStatus(error.status, asked)
  if (error.problem === 'unusable') {
    return failed(`${endpoint} is of no use: ${detailOf(error)}.`, checkAddress(asked))
  }
  const place = { host: new URL(url).host, setting, timeoutSeconds }
  const { message, next } = connectionTrouble(error.problem === 'timeout' ? 'ETIMEDOUT' : error.code, place)
  return failed(`${endpoint} cannot be reached: ${message}`, next)
}

/** @param error a registered code, where the answer had one. */
export function findingOfStatus(status: number, asked: Asked, error?: string): Finding {
  const { check, endpoint, url } = asked
  const { warning, failed } = about(check)
  const answer = `${endpoint} answers ${status}${error === undefined ? '' : ` ${error}`}`
  if (status === 429) return warning(`${answer}: too many requests just now.`, 'Check again in a minute.')
  if (status >= 500)
    return failed(`${answer}: it is in trouble.`, 'Check again later; ask the provider if it stays so.')
  if (status === 404 || status === 405 || status === 410) {
    return failed(`${answer}: there is no such endpoint at ${withoutQuery(url)}.`, checkAddress(asked))
  }
  if (status >= 300 && status < 400) {
    return failed(`${answer} and leads elsewhere, where nothing is sent.`, checkAddress(asked))
  }
  return failed(`${answer}, which is not what it should.`, checkAddress(asked))
}

export function checkAddress({ setting, url }: Asked): string {
  return setting === undefined
    ? `Look for what stands between this machine and ${new URL(url).host}.`
    : `Compare ${setting} with the provider's documentation.`
}

function withoutQuery(address: string): string {
  const { origin, pathname } = new URL(address)
  return origin + pathname
}

// Our own words; of the answer's content they hold an issuer's name at most.
function detailOf({ message }: UpstreamError): string {
  return message.slice(message.indexOf(': ') + 2)
}
