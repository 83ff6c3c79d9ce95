// `npm run simulate -- --seeds N [--from N] [--without SAFEGUARD]` runs N schedules, and prints the schedule of each seed that
// fails. `--one SEED` prints one schedule. It exits with 1 if a seed fails. `--list` prints the safeguards.
// `npm run simulate -- --restore [--replicas N] [--sessions N] [--copies N]` restores sessions after Redis has lost its data.
import { parseArgs } from 'node:util'
import { simulateRestore } from './restore.js'
import { scheduleOf, simulate } from './run.js'
import { safeguards } from './safeguards.js'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '0' },
    one: { type: 'string' },
    without: { type: 'string' },
    list: { type: 'boolean', default: false },
    restore: { type: 'boolean', default: false },
    replicas: { type: 'string', default: '1000' },
    sessions: { type: 'string', default: '10000' },
    copies: { type: 'string', default: '1' }
  }
})

const write = (line: string) => process.stdout.write(`${line}\n`)

if (values.list) {
  for (const [index, { name }] of safeguards.entries()) write(`${index + 1}: ${name}`)
} else if (values.restore) {
  const [replicas, sessions, copies] = [Number(values.replicas), Number(values.sessions), Number(values.copies)]
  const result = await simulateRestore({ replicas, sessions, copies })
  const { halfSeconds, allSeconds, availableSeconds, reads, scripts, busiestSecond, outages, lost } = result
  write(`${replicas} replicas restore ${sessions} sessions, each of which ${copies} of them remember:`)
  write(`half of the sessions are restored after ${halfSeconds.toFixed(1)} s, all after ${allSeconds.toFixed(1)} s`)
  write(
    `every replica can use Redis again after ${availableSeconds.toFixed(1)} s (${outages} times one could not meanwhile)`
  )
  write(`Redis ran ${scripts} scripts and ${reads} reads, at most ${busiestSecond} in a second; sessions lost: ${lost}`)
  process.exitCode = lost > 0 ? 1 : 0
} else {
  const safeguard = values.without === undefined ? undefined : safeguards[Number(values.without) - 1]
  if (values.without !== undefined && !safeguard)
    throw new Error(`--without takes a number from 1 to ${safeguards.length}`)
  const from = Number(values.one ?? values.from)
  const count = values.one === undefined ? Number(values.seeds) : 1
  let failed = 0
  let lost = 0
  let calls = 0
  const excuses = new Map<string, number>()
  for (let seed = from; seed < from + count; seed++) {
    const result = await simulate(scheduleOf(seed), safeguard)
    const { schedule, violations, notes } = result
    for (const excuse of result.excuses) excuses.set(excuse, (excuses.get(excuse) ?? 0) + 1)
    calls += result.calls
    lost += violations.length
    if (violations.length > 0) failed++
    if (values.one === undefined && (violations.length === 0 || safeguard || failed > 3)) continue
    write(
      `seed ${seed} (${schedule.mode}, sessions in ${schedule.sessionStore}, ${schedule.faults.join(', ') || 'no faults'}):`
    )
    for (const line of [...notes, ...violations.map(violation => `VIOLATION: ${violation}`)]) write(`  ${line}`)
  }
  const without = safeguard ? ` without this safeguard: ${safeguard.name}` : ''
  for (const [excuse, number] of excuses) write(`accepted: ${number} logins were lost, because ${excuse}`)
  write(`${count} schedules with ${calls} token requests${without}: ${failed} failed, with ${lost} violations`)
  process.exitCode = failed > 0 ? 1 : 0
}
