// The tables, the picture and the random numbers of `npm run bench -- --only lost`.
import test from 'ava'

type Outcome = Readonly<Record<string, number | string>>

interface Run {
  seed: number
  users: number
  programs: { name: string; title: string; outcomes: Record<string, Outcome> }[]
}

// The benchmark is JavaScript without declarations.
const lost = new URL('../../bench/lost/', import.meta.url)
const { createRandom } = (await import(`${lost}random.js`)) as { createRandom(seed: number): () => number }
const { errorsAtKill, lossTable, kindTable, waitTable, failureTable } = await import(`${lost}tables.js`)
const { hourTable } = await import(`${lost}hour.js`)
const { picture } = await import(`${lost}picture.js`)

function run(seed: number, signedOut: number): Run {
  const outcome = { signedOut, waiting: 0, sentTwice: signedOut, refreshes: 75, requests: 200, failed: 3 }
  const nothing = { signedOut: 0, waiting: 2, sentTwice: 0, refreshes: 750, requests: 100, failed: 0 }
  return {
    seed,
    users: 50,
    programs: [
      {
        name: 'a',
        title: 'Program <A>',
        outcomes: { 'two-processes': outcome, 'redis-empty': { impossible: 'no Redis' } }
      },
      { name: 'b', title: 'Program B', outcomes: { 'two-processes': nothing, 'redis-empty': { error: 'it ended' } } }
    ]
  }
}

function cellsOf(text: string, title: string): string[] {
  const line = text.split('\n').find(line => line.startsWith(`| ${title} `)) ?? ''
  return line
    .split('|')
    .slice(2, -1)
    .map(cell => cell.trim())
}

test('the same seed gives the same random numbers, and another seed gives others', t => {
  const numbers = (seed: number) => Array.from({ length: 5 }, createRandom(seed))
  t.deepEqual(numbers(7), numbers(7))
  t.notDeepEqual(numbers(7), numbers(8))
  t.true(numbers(7).every(number => number >= 0 && number < 1))
})

test('the table shows the value of each run that has played a case, and does not count zero if there is no result', t => {
  const text = lossTable([run(1, 12), run(2, 9)])
  t.deepEqual(cellsOf(text, 'two processes'), ['12, 9', '0 (2 waited)'])
  t.deepEqual(cellsOf(text, 'Redis restarted, empty'), ['not possible', 'no result'])
  t.false(text.includes('a process killed'), 'a case that no run played has no row')
  const second = run(2, 9)
  for (const program of second.programs) delete program.outcomes['two-processes']
  t.deepEqual(cellsOf(lossTable([run(1, 12), second]), 'two processes'), ['12 (1 run)', '0 (2 waited) (1 run)'])
})

test('the kill has the median and the range of all runs, and its runs change no other row', t => {
  const kills = [4, 9, 0, 28].map((signedOut, index) => {
    const { programs, ...rest } = run(index, 5)
    const outcomes = { killed: { signedOut, waiting: 0, inProgress: 5 } }
    return { ...rest, programs: programs.map(program => ({ ...program, outcomes: { ...outcomes } })) }
  })
  const [first, ...others] = kills
  for (const [index, { outcomes }] of first?.programs.entries() ?? []) {
    Object.assign(outcomes, run(1, 12).programs[index]?.outcomes)
  }
  const text = lossTable([first as Run], others)
  t.deepEqual(cellsOf(text, 'process killed')[0], '6.5 (0 to 28)')
  t.deepEqual(cellsOf(text, 'refreshes in progress when a process is killed')[0], '5')
  t.deepEqual(cellsOf(text, 'mean number of logins lost when a process is killed')[0], '10.3')
  t.deepEqual(cellsOf(text, 'lost logins for each refresh in progress')[0], '2.05', '41 lost logins for 20 refreshes')
  t.deepEqual(cellsOf(text, 'two processes')[0], '12')
})

test('the table of the providers has the number of each kind in one cell', t => {
  const text = kindTable([[run(1, 50), run(2, 49)], [run(1, 30)], [run(1, 0)]])
  t.deepEqual(cellsOf(text, 'two processes'), ['50, 49 / 30 / 0', '0 (2 waited) / 0 (2 waited) / 0 (2 waited)'])
})

/** A run of one program, with these results of each case. */
function runOf(outcomes: Record<string, Outcome>, name = 'a', seed = 1): Run {
  return { seed, users: 60, programs: [{ name, title: 'Program A', outcomes }] }
}

test('the waits are those of the worse run, with the number of users who stayed signed in', t => {
  const outcome = { signedOut: 0, waiting: 0, waited: 0, longestWaitMs: 0 }
  const worse = { ...outcome, signedOut: 50, waited: 3, longestWaitMs: 52_000 }
  const nobody = { ...outcome, signedOut: 60 }
  const text = waitTable([
    runOf({ killed: outcome, stopped: outcome, cut: nobody }),
    runOf({ killed: worse, stopped: outcome, cut: nobody })
  ])
  t.deepEqual(cellsOf(text, 'process killed'), ['3/10, 52.0 s'])
  t.deepEqual(cellsOf(text, 'process stopped, 6 s'), [], 'a row without waits is left out')
  t.deepEqual(cellsOf(text, 'connections cut'), ['all lost'])
})

test('the waits at a kill are those of all runs, and a further run changes no other row', t => {
  const outcome = { signedOut: 0, waiting: 0, waited: 1, longestWaitMs: 1000 }
  const kill = { ...outcome, waited: 5, longestWaitMs: 2000 }
  const [first, second] = [runOf({ killed: outcome, stopped: outcome }), runOf({ killed: kill, stopped: kill }, 'a', 2)]
  const text = waitTable([first], [second])
  t.deepEqual(cellsOf(text, 'process killed'), ['5/60, 2.0 s'])
  t.deepEqual(cellsOf(text, 'process stopped, 6 s'), ['1/60, 1.0 s'])
  t.is(errorsAtKill([first, second], ['a']), '3 to 3', 'the mean of 1 and 5')
})

test('the failures and the response times are the higher ones of the runs', t => {
  const outcome = { signedOut: 0, requests: 200, failed: 3, p99Ms: 400 }
  const text = failureTable([runOf({ killed: outcome }), runOf({ killed: { ...outcome, failed: 1, p99Ms: 5000 } })])
  t.deepEqual(cellsOf(text, 'process killed'), ['1.5 %, 5.0 s'])
})

// A user refreshes every 3 s.
const undisturbed = { 'two-processes': { signedOut: 0, refreshes: 480 } }

test('with tokens of an hour, a fault signs out users whose refresh meets it', t => {
  const text = hourTable([
    runOf({
      ...undisturbed,
      killed: { signedOut: 12 },
      'provider-3s': { signedOut: 60 },
      cut: { signedOut: 30 },
      stopped: { signedOut: 12 }
    })
  ])
  t.deepEqual(cellsOf(text, 'process killed'), ['1.7'], '10,000 × 0.2 × 3 s / 3,600 s')
  t.deepEqual(cellsOf(text, 'provider slow, 3 s'), ['14'], '10,000 × 1 × 5 s / 3,600 s')
  t.deepEqual(cellsOf(text, 'connections cut'), ['5.1'], '10,000 × (1 - 0.5 ^ (3 / 8)) × 8 s / 3,600 s')
  t.deepEqual(cellsOf(text, 'process stopped, 6 s'), ['1.7 to 3.3'], '10,000 × 0.2 × 3 s or 6 s / 3,600 s')
})

test('with tokens of an hour, a program with two token requests refreshes half as often, and without refreshes nothing is computed', t => {
  const text = hourTable([runOf({ ...undisturbed, killed: { signedOut: 12 } }, 'platform-auth-server-dual')])
  t.deepEqual(cellsOf(text, 'process killed'), ['3.3'])
  const unknown = hourTable([runOf({ ...undisturbed, 'redis-empty': { signedOut: 12 } })])
  t.deepEqual(cellsOf(unknown, 'Redis restarted, empty, busy page'), ['–'])
})

test('with tokens of an hour, an outage of Redis signs out users who send a request in it, or all if it loses its data', t => {
  const text = hourTable([
    runOf({
      ...undisturbed,
      'redis-empty': { signedOut: 12 },
      'redis-empty-long': { signedOut: 0 },
      'redis-empty-idle': { signedOut: 60 },
      'redis-file': { signedOut: 30 },
      'redis-file-long': { signedOut: 30 }
    })
  ])
  t.deepEqual(cellsOf(text, 'Redis restarted, empty, busy page'), ['1.7'], 'only those who refresh')
  t.deepEqual(cellsOf(text, 'Redis restarted, empty, quiet page'), ['10000'], 'the processes have forgotten them')
  t.deepEqual(cellsOf(text, 'Redis restarted, append-only file, busy page'), ['5000'])
  t.deepEqual(cellsOf(text, 'Redis restarted, append-only file, quiet page'), ['167'], '10,000 × 1 s / 60 s')
})

test('the picture has a bar for each loss, a text alternative, and colours for a dark page', t => {
  const svg = picture([run(1, 50), run(2, 25)])
  const widths = [...svg.matchAll(/class="bar"[^>]*width="(\d+)"/g)].map(match => Number(match[1]))
  t.deepEqual(widths, [69], 'the bar is as long as three quarters of its track of 92')
  t.true(svg.includes('<desc id="description">Program &lt;A&gt;: 50, 25 (two processes).'))
  t.true(svg.includes('not possible</text>'))
  t.true(svg.includes('no result</text>'))
  t.true(svg.includes('@media (prefers-color-scheme: dark)'))
  t.false(svg.includes('<A>'), 'titles are escaped')
})

test('the picture has a second bar for pages that load a document first, where they were measured', t => {
  const outcome = { signedOut: 30, waiting: 0 }
  const document = runOf({ killed: { ...outcome, signedOut: 15 } })
  const svg = picture([runOf({ killed: outcome, cut: outcome })], [], [document])
  const widths = [...svg.matchAll(/class="bar"[^>]*width="(\d+)"/g)].map(match => Number(match[1]))
  t.deepEqual(widths, [46, 23, 46])
  t.true(svg.includes('>doc 15</text>'))
})

test('the picture shows errors where no user was signed out', t => {
  const svg = picture([
    runOf({ killed: { signedOut: 0, waiting: 0, waited: 60 }, cut: { signedOut: 0, waiting: 0, waited: 0 } })
  ])
  t.true(svg.includes('class="errors" x="215" y="77">0, errors: 60</text>'))
  t.true(svg.includes('class="none" x="339" y="77">0</text>'))
})
