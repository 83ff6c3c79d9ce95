// Runs simulated schedules, and prints the schedule of each seed that fails. It exits with 1 if a seed fails.
import { parseArgs } from 'node:util'
import { simulate } from './run.js'
import { safeguards } from './safeguards.js'
import { scheduleOf } from './schedule.js'

const usage = `Usage: npm run simulate -- [options]

  --seeds 1000          the number of schedules
  --from 0              the first seed
  --one SEED            prints this schedule
  --without NUMBER      switches off a safeguard
  --list                prints the safeguards with their numbers`

const write = (line: string) => process.stdout.write(`${line}\n`)

try {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '1000' },
      from: { type: 'string', default: '0' },
      one: { type: 'string' },
      without: { type: 'string' },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false }
    }
  })
  if (values.help) write(usage)
  else if (values.list) for (const [index, { name }] of safeguards.entries()) write(`${index + 1}: ${name}`)
  else if (values.one !== undefined) await runSchedules(number(values.one), 1, true, values.without)
  else await runSchedules(number(values.from), number(values.seeds), false, values.without)
} catch (error) {
  const isBadOption = String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS')
  if (!isBadOption && !(error instanceof RangeError)) throw error
  write(`${(error as Error).message}\n\n${usage}`)
  process.exitCode = 2
}

function number(text: string): number {
  if (/^\d+$/.test(text)) return Number(text)
  throw new RangeError(`"${text}" is not a whole number.`)
}

/** @param isPrinted true to print the schedules also if they do not fail */
async function runSchedules(from: number, count: number, isPrinted: boolean, without?: string): Promise<void> {
  const safeguard = without === undefined ? undefined : safeguards[number(without) - 1]
  if (without !== undefined && !safeguard)
    throw new RangeError(`--without takes a number from 1 to ${safeguards.length}.`)
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
    if (!isPrinted && (violations.length === 0 || safeguard || failed > 3)) continue
    write(
      `seed ${seed} (${schedule.mode}, sessions in ${schedule.sessionStore}, ${schedule.faults.join(', ') || 'no faults'}):`
    )
    for (const line of [...notes, ...violations.map(violation => `VIOLATION: ${violation}`)]) write(`  ${line}`)
  }
  const suffix = safeguard ? ` without this safeguard: ${safeguard.name}` : ''
  for (const [excuse, times] of excuses) write(`accepted: ${times} logins were lost, because ${excuse}`)
  write(`${count} schedules with ${calls} token requests${suffix}: ${failed} failed, with ${lost} violations`)
  process.exitCode = failed > 0 ? 1 : 0
}
