// The tables, the picture and the random numbers of `npm run bench -- --only lost`.
import test from 'ava'

interface Outcome {
  impossible?: string
  error?: string
  signedOut?: number
  waiting?: number
  sentTwice?: number
  refreshes?: number
  inProgress?: number
  requests?: number
  failed?: number
}

interface Run {
  seed: number
  users: number
  programs: { name: string; title: string; outcomes: Record<string, Outcome> }[]
}

interface Tables {
  lossTable(runs: Run[], kills?: Run[]): string
  kindTable(kinds: Run[][]): string
  waitTable(runs: Run[]): string
  latencyTable(runs: Run[]): string
  failureTable(runs: Run[]): string
  hourTable(runs: Run[]): string
}

const lost = new URL('../../bench/lost/', import.meta.url)
const { createRandom } = (await import(`${lost}random.js`)) as { createRandom(seed: number): () => number }
const { lossTable, kindTable, waitTable, latencyTable, failureTable, hourTable } = (await import(
  `${lost}tables.js`
)) as Tables
const { picture } = (await import(`${lost}picture.js`)) as { picture(runs: Run[]): string }

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

test('the table shows the value of each run, and does not count zero if there is no result', t => {
  const text = lossTable([run(1, 12), run(2, 9)])
  t.deepEqual(cellsOf(text, 'two processes'), ['12, 9', '0 (2 waited)'])
  t.deepEqual(cellsOf(text, 'Redis restarted, empty'), ['not possible', 'no result'])
  t.false(text.includes('a process killed'), 'a case that no run played has no row')
})

test('a case that only one run has played has the value of this run', t => {
  const second = run(2, 9)
  for (const program of second.programs) delete program.outcomes['two-processes']
  t.deepEqual(cellsOf(lossTable([run(1, 12), second]), 'two processes'), ['12', '0 (2 waited)'])
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
  t.deepEqual(cellsOf(text, 'refreshes in progress at the kill')[0], '5')
  t.deepEqual(cellsOf(text, 'two processes')[0], '12')
})

test('the table of the providers has the number of each kind in one cell', t => {
  const text = kindTable([[run(1, 50), run(2, 49)], [run(1, 30)], [run(1, 0)]])
  t.deepEqual(cellsOf(text, 'two processes'), ['50, 49 / 30 / 0', '0 (2 waited) / 0 (2 waited) / 0 (2 waited)'])
})

test('the waits and the latencies are the higher ones of the runs', t => {
  const runs = [run(1, 0), run(2, 0)]
  const [outcomes] = runs.map(({ programs }) => programs[0]?.outcomes['two-processes'])
  for (const { programs } of runs) {
    for (const { outcomes } of programs) {
      Object.assign(outcomes['two-processes'] ?? {}, { waited: 0, longestWaitMs: 0, p99Ms: 900, longestMs: 1000 })
    }
  }
  Object.assign(outcomes ?? {}, { waited: 3, longestWaitMs: 52_000, p99Ms: 400, longestMs: 5000 })
  t.deepEqual(cellsOf(waitTable(runs), 'two processes'), ['3, 52.0 s', '0'])
  t.deepEqual(cellsOf(latencyTable(runs), 'two processes'), ['0.9 s / 5.0 s', '0.9 s / 1.0 s'])
})

test('of 10,000 users with tokens of an hour, a fault signs out those whose refresh meets it', t => {
  const kept = { signedOut: 0, waiting: 0 }
  const outcomes = {
    'two-processes': kept,
    killed: { signedOut: 10, waiting: 0 },
    'provider-3s': { signedOut: 50, waiting: 0 },
    'redis-empty': { signedOut: 25, waiting: 0 }
  }
  const text = hourTable([{ seed: 1, users: 50, programs: [{ name: 'a', title: 'Program A', outcomes }] }])
  t.deepEqual(cellsOf(text, 'process killed'), ['1.7'], '10,000 × 10/50 × 3 s / 3,600 s')
  t.deepEqual(cellsOf(text, 'provider slow, 3 s'), ['14'], '10,000 × 50/50 × 5 s / 3,600 s')
  t.deepEqual(cellsOf(text, 'Redis restarted, empty'), ['5000'], 'the lifetime makes no difference')
})

test('the table of failures shows the share of the requests', t => {
  t.deepEqual(cellsOf(failureTable([run(1, 12)]), 'two processes'), ['1.5 %', '0.0 %'])
})

test('the picture has a bar for each loss, a text alternative, and colours for a dark page', t => {
  const svg = picture([run(1, 50), run(2, 25)])
  t.deepEqual(
    [...svg.matchAll(/class="bar"[^>]*width="(\d+)"/g)].map(match => Number(match[1])),
    [69],
    'the bar is as long as three quarters of its track of 92'
  )
  t.true(svg.includes('<desc id="description">Program &lt;A&gt;: 50, 25 (two processes).'))
  t.true(svg.includes('not possible</text>'))
  t.true(svg.includes('no result</text>'))
  t.true(svg.includes('@media (prefers-color-scheme: dark)'))
  t.false(svg.includes('<A>'), 'titles are escaped')
})
