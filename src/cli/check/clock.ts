import type { Endpoint } from '../../idp/errors.js'
import { about, type Finding } from './finding.js'

const { ok, warning, failed } = about('clock')

export interface ClockReading {
  readonly endpoint: Endpoint
  /** The Date header, in milliseconds since the epoch. */
  readonly date: number
  readonly sentAt: number
  readonly receivedAt: number
}

const WORTH_A_WARNING_SECONDS = 60
// From here on ID tokens are refused, and replicas disagree on whether a token has expired.
const TOO_MUCH_SECONDS = 300
// The header gives whole seconds, cut off.
const HALF_A_SECOND_MS = 500

/** How far this machine's clock is from the provider's; nothing where the provider said no time. */
export function clock(readings: readonly ClockReading[]): Finding[] {
  // What a POST answers comes from no cache, so its time is not that of yesterday.
  const reading = readings.find(({ endpoint }) => endpoint === 'token') ?? readings[0]
  if (!reading) return []
  const { date, sentAt, receivedAt } = reading
  const ahead = Math.round(((sentAt + receivedAt) / 2 - date - HALF_A_SECOND_MS) / 1000)
  const seconds = Math.abs(ahead)
  if (seconds <= 1) return [ok("This machine's clock agrees with the provider's.")]
  const message = `This machine's clock is ${spoken(seconds)} ${ahead > 0 ? 'ahead of' : 'behind'} the provider's.`
  if (seconds <= WORTH_A_WARNING_SECONDS) return [ok(message)]
  const next = 'Let NTP set the clock (timedatectl set-ntp true), or that of the host of this container.'
  return [seconds <= TOO_MUCH_SECONDS ? warning(message, next) : failed(message, next)]
}

function spoken(seconds: number): string {
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
}
