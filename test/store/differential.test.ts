// Runs random operations on the Lua scripts in a real Redis and on their implementation in memory, and compares every answer
// and the remaining lifetimes. `STORE_SEQUENCES` is the number of sequences, and `STORE_SEED` is the first seed.
import type { Redis } from 'ioredis'
import { createKeyring } from '#src/session/keyring.js'
import type { SessionRecord } from '#src/session/record.js'
import { createMemoryScripts, createMemoryStorage } from '#src/store/memory-scripts.js'
import type { RedisCommands } from '#src/store/redis-client.js'
import { createRedisScripts } from '#src/store/redis-scripts.js'
import type { Outcome, ScriptTimes, SessionScripts } from '#src/store/scripts.js'
import { createRandom } from '../helpers/random.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'

const SEQUENCES = Number(process.env.STORE_SEQUENCES ?? 200)
const FIRST_SEED = Number(process.env.STORE_SEED ?? 1)
const OPERATIONS = 30

// All times are multiples of this unit. A sequence takes much less real time than one unit, so the lifetimes of Redis, which
// run in real time, never differ by a whole unit.
const UNIT_MS = 10_000
const TIMES: ScriptTimes = {
  entryMs: 12 * UNIT_MS,
  loginMs: 5 * UNIT_MS,
  keepMs: 2 * UNIT_MS,
  lockMs: 3 * UNIT_MS,
  settleMs: UNIT_MS
}
const READ_TIME = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`
const PREFIX = 'platform-auth:test:'
const IDS = ['one', 'two'] as const
const OWNERS = ['process a', 'process b', 'process c'] as const
const HIGHEST_REV = 4

type Scripts = SessionScripts<SessionRecord>

/** The Lua scripts in Redis, with the clock of the test instead of the clock of Redis. */
function luaWithClock(admin: Redis, now: () => number): Scripts {
  const commands = {
    evalsha: async () => {
      throw new Error('NOSCRIPT')
    },
    eval(lua: string, ...rest: (string | number)[]) {
      const text = lua.replace(READ_TIME, 'local now = tonumber(table.remove(ARGV))')
      if (text === lua) throw new Error('The script does not read the time as this test expects.')
      return admin.eval(text, ...(rest as [number, ...string[]]), now())
    }
  } as unknown as RedisCommands
  const sealer = createKeyring(['a secret of this test']).sealer('stored session')
  return createRedisScripts(command => command(commands), PREFIX, sealer, TIMES)
}

/** Changes the lifetimes of all keys, because the clock of the test does not change the clock of Redis. */
async function age(admin: Redis, ms: number): Promise<void> {
  const script = `
    for _, key in ipairs(redis.call('KEYS', '*')) do
      local left = redis.call('PTTL', key)
      if left < 0 then error('the key ' .. key .. ' has no lifetime') end
      if left <= tonumber(ARGV[1]) then redis.call('DEL', key) else redis.call('PEXPIRE', key, left - ARGV[1]) end
    end`
  await admin.eval(script, 0, ms)
}

// The second session is kept in Redis, so its records are encrypted with its key, too.
const KEYS: Readonly<Record<string, string>> = { two: 'the key of the second session' }

function recordOf(id: string, rev: number, text: string): SessionRecord {
  const key = KEYS[id]
  const fields = { refresh_token: text, expires_at: 0 }
  return { id, rev, loggedInAt: 0, issuedAt: 0, fields, ...(key !== undefined && { key }) }
}

interface Operation {
  readonly name: string
  readonly run: (scripts: Scripts) => Promise<unknown>
}

/** Returns the next random operation. `losses` are the losses that `take` has named so far. */
function nextOperation(random: () => number, losses: ReadonlyMap<string, string>, count: number): Operation {
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T
  const id = pick(IDS)
  const owner = pick(OWNERS)
  // Most sessions advance slowly, so that different processes often work on the same revision.
  const rev = Math.floor(random() * random() * (HIGHEST_REV + 1))
  const newLoss = `loss ${count}`
  const pauseMs = pick([0, 0, UNIT_MS, 3 * UNIT_MS, 7 * UNIT_MS])
  const outcomes: readonly Outcome<SessionRecord>[] = [
    { kind: 'tokens', record: recordOf(id, rev, `token ${count}`), keepsLock: random() < 0.4, pauseMs },
    { kind: 'tokens', record: recordOf(id, rev, `token ${count}`), keepsLock: false, pauseMs: 0 },
    { kind: 'failure', pauseMs, isDoubtful: random() < 0.5 },
    { kind: 'ended', reason: pick(['refused', '', 'denied other']) }
  ]
  const reported = random() < 0.7 ? losses.get(id) : pick([undefined, 'another loss'])
  const outcome = pick(outcomes)
  const leftMs = pick([UNIT_MS, 2 * UNIT_MS, 10 * UNIT_MS])
  const take: Operation = {
    name: `take ${id} ${rev} ${owner} ${reported} ${newLoss}`,
    run: scripts => scripts.take(id, { rev, owner, reported, newLoss, key: KEYS[id] })
  }
  const save: Operation = {
    name: `save ${id} ${rev} ${owner} ${JSON.stringify(outcome)} ${newLoss}`,
    run: scripts => scripts.save(id, { rev, owner, outcome, newLoss, key: KEYS[id] })
  }
  const others: readonly Operation[] = [
    { name: `look ${id} ${rev}`, run: scripts => scripts.look(id, rev, KEYS[id]) },
    { name: `seen ${id} ${rev} ${newLoss}`, run: scripts => scripts.seen(id, rev, newLoss) },
    {
      name: `seen ${id} ${rev} ${newLoss} with its record`,
      run: scripts => scripts.seen(id, rev, newLoss, recordOf(id, rev, `token ${count}`))
    },
    { name: `unseen ${id}`, run: scripts => scripts.unseen(id) },
    {
      name: `hold ${id} ${rev} ${owner} ${leftMs} ${newLoss}`,
      run: scripts => scripts.hold(id, rev, owner, leftMs, newLoss)
    }
  ]
  const lot = random()
  if (lot < 0.35) return take
  if (lot < 0.65) return save
  if (lot < 0.97) return pick(others)
  return { name: `out ${id}`, run: scripts => scripts.out(id, KEYS[id]) }
}

/** Runs one sequence. Returns the history up to the first difference, or the number of compared answers. */
async function compare(admin: Redis, seed: number): Promise<string | number> {
  const random = createRandom(seed)
  const start = Date.now()
  let now = start
  let latest = start
  const storage = createMemoryStorage<SessionRecord>(() => now, TIMES)
  const memory = createMemoryScripts(() => now, TIMES, storage)
  const lua = luaWithClock(admin, () => now)
  const losses = new Map<string, string>()
  const history: string[] = []
  let compared = 0

  async function isSame({ name, run }: Operation): Promise<boolean> {
    const [expected, found] = [await run(memory), await run(lua)].map(answer => JSON.stringify(answer ?? null))
    const answers = expected === found ? expected : `\n  memory ${expected}\n  Redis  ${found}`
    history.push(`${(now - start) / UNIT_MS}: ${name} -> ${answers}`)
    compared++
    const loss = /"kind":"unsettled","loss":"(.*?)"/.exec(expected as string)?.[1]
    if (loss !== undefined) losses.set(name.split(' ')[1] as string, loss)
    return expected === found
  }

  /** Moves the clock. A negative number sets it back. */
  async function pass(units: number): Promise<void> {
    now += units * UNIT_MS
    latest = Math.max(latest, now)
    await age(admin, units * UNIT_MS)
  }

  await admin.flushall()
  for (let count = 0; count < OPERATIONS; count++) {
    const lot = random()
    if (lot < 0.25) await pass(1)
    else if (lot < 0.29) await pass(Math.ceil(random() * 6))
    else if (lot < 0.3) await pass(-4)
    else if (lot < 0.34) {
      const id = IDS[Math.floor(random() * IDS.length)] as string
      const part = random() < 0.5 ? 'entry' : 'record'
      storage[part === 'entry' ? 'entries' : 'records'].delete(id)
      await admin.del(`${PREFIX}{${id}}${part === 'record' ? ':record' : ''}`)
      history.push(`${(now - start) / UNIT_MS}: evict the ${part} of ${id}`)
    }
    if (!(await isSame(nextOperation(random, losses, count)))) return history.join('\n')
  }
  // The remaining lifetimes. Looking changes nothing, and its answers show when the entry and the record have expired.
  const last = (TIMES.entryMs + latest - now) / UNIT_MS
  for (let unit = 0; unit <= last; unit++) {
    for (const id of IDS) {
      for (let rev = -1; rev <= HIGHEST_REV; rev++) {
        const look: Operation = { name: `look ${id} ${rev}`, run: scripts => scripts.look(id, rev, KEYS[id]) }
        if (!(await isSame(look))) return history.join('\n')
      }
    }
    await pass(1)
  }
  return (await admin.dbsize()) === 0 ? compared : `${history.join('\n')}\nRedis has keys that live too long.`
}

testWithRedis(
  `the Lua scripts and the implementation in memory agree in ${SEQUENCES} random sequences of operations`,
  async t => {
    const { admin } = await startRedis(t)
    let compared = 0
    for (let seed = FIRST_SEED; seed < FIRST_SEED + SEQUENCES; seed++) {
      const result = await compare(admin, seed)
      if (typeof result === 'string') {
        t.fail(`seed ${seed}:\n${result}`)
        return
      }
      compared += result
    }
    t.log(`${SEQUENCES * OPERATIONS} operations, ${compared} compared answers`)
    t.pass()
  }
)
