import test from 'ava'
import { clock } from '#src/cli/check/findings/clock.js'
import type { ClockReading } from '#src/cli/check/provider.js'
import { faults } from '../../../helpers/hostile-idp/index.js'
import { checkAt } from '../checked.js'

const next = 'Next: Let NTP set the clock (timedatectl set-ntp true). For a container, set the clock of its host.'

/** The reading of a clock that is ahead by this many seconds. The Date header has whole seconds. */
function reading(aheadSeconds: number, endpoint: ClockReading['endpoint'] = 'token'): ClockReading {
  const sentAt = 1_800_000_000_300
  return { endpoint, date: 1_800_000_000_000 - aheadSeconds * 1000, sentAt, receivedAt: sentAt + 400 }
}

const table: readonly (readonly [aheadSeconds: number, status: string, message: string])[] = [
  [0, 'ok', "This machine's clock agrees with the provider's."],
  [1, 'ok', "This machine's clock agrees with the provider's."],
  [-30, 'ok', "This machine's clock is 30 s behind the provider's."],
  [60, 'ok', "This machine's clock is 60 s ahead of the provider's."],
  [61, 'warning', "This machine's clock is 61 s ahead of the provider's."],
  [-300, 'warning', "This machine's clock is 5 min behind the provider's."],
  [-301, 'failed', "This machine's clock is 5 min behind the provider's."],
  [7200, 'failed', "This machine's clock is 120 min ahead of the provider's."]
]

for (const [aheadSeconds, status, message] of table) {
  test(`a clock that is ${aheadSeconds} s ahead gives the status ${status}`, t => {
    const [finding] = clock([reading(aheadSeconds)])
    t.is(finding?.status as string, status)
    t.is(finding?.message, message)
    t.is(finding?.next === undefined, status === 'ok')
  })
}

test('the time of the token endpoint is used first, because other answers may come from a cache', t => {
  const [finding] = clock([reading(3600, 'discovery'), reading(0)])
  t.is(finding?.status, 'ok')
})

test('check reports no clock finding if the provider sends no Date header', t => {
  t.deepEqual(clock([]), [])
})

test('check also reads the time from the Date header of an error response', async t => {
  const { line, code } = await checkAt(t, {
    prepare: idp => {
      const date = new Date(Date.now() + 600_000).toUTCString()
      idp.fail('token', faults.answer({ status: 400, headers: { date }, body: { error: 'invalid_grant' } }))
    }
  })
  t.is(line('clock'), `failed clock This machine's clock is 10 min behind the provider's. ${next}`)
  t.is(code, 1)
})
