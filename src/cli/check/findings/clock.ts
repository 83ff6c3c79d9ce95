import { type Finding, findingsFor } from '../finding.js'
import type { ClockReading } from '../provider.js'

const { ok, warning, failed } = findingsFor('clock')

const WARNING_SECONDS = 60
// With a larger difference, ID tokens are rejected and replicas disagree about the expiry of a token.
const FAILURE_SECONDS = 300
// The Date header is truncated to whole seconds, which removes half a second on average.
const TRUNCATED_MS = 500

/** Compares the clock of this machine with the provider's. Returns nothing if no response had a Date header. */
export function clock(readings: readonly ClockReading[]): Finding[] {
  // Token requests use POST, which caches do not answer. The date of their responses is therefore current.
  const reading = readings.find(({ endpoint }) => endpoint === 'token') ?? readings[0]
  if (!reading) return []
  const { date, sentAt, receivedAt } = reading
  const ahead = Math.round(((sentAt + receivedAt) / 2 - date - TRUNCATED_MS) / 1000)
  const seconds = Math.abs(ahead)
  if (seconds <= 1) return [ok("This machine's clock agrees with the provider's.")]
  const message = `This machine's clock is ${durationText(seconds)} ${ahead > 0 ? 'ahead of' : 'behind'} the provider's.`
  if (seconds <= WARNING_SECONDS) return [ok(message)]
  const next = 'Let NTP set the clock (timedatectl set-ntp true). For a container, set the clock of its host.'
  return [seconds <= FAILURE_SECONDS ? warning(message, next) : failed(message, next)]
}

function durationText(seconds: number): string {
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
}
