// The tables, the picture and the random numbers of `npm run bench -- --only lost`.
import test from 'ava'

interface Outcome {
  impossible?: string
  error?: string
  signedOut?: number
  waiting?: number
  sentTwice?: number
  refreshes?: number
  requests?: number
  failed?: number
}

interface Run {
  seed: number
  users: number
  programs: { name: string; title: string; outcomes: Record<string, Outcome> }[]
}

interface Tables {
  runTable(runs: Run[]): string
  failureTable(runs: Run[]): string
  hourTable(runs: Run[]): string
}

const lost = new URL('../../bench/lost/', import.meta.url)
const { createRandom } = (await import(`${lost}random.js`)) as { createRandom(seed: number): () => number }
const { runTable, failureTable, hourTable } = (await import(`${lost}tables.js`)) as Tables
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
        outcomes: { 'one-process': outcome, 'redis-empty': { impossible: 'no Redis' } }
      },
      { name: 'b', title: 'Program B', outcomes: { 'one-process': nothing, 'redis-empty': { error: 'it ended' } } }
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
  const text = runTable([run(1, 12), run(2, 9)])
  t.deepEqual(cellsOf(text, 'signed out: one process'), ['12, 9', '0 (2 waited)'])
  t.deepEqual(cellsOf(text, 'signed out: Redis restarted empty'), ['not possible', 'no result'])
  t.deepEqual(cellsOf(text, 'refresh tokens sent twice, all cases'), ['12, 9', '0'])
  t.deepEqual(cellsOf(text, 'refresh requests of a user, one process'), ['1.5', '15.0'])
  t.false(text.includes('a process killed'), 'a case that no run played has no row')
})

test('a case that only one run has played has the value of this run', t => {
  const second = run(2, 9)
  for (const program of second.programs) delete program.outcomes['one-process']
  t.deepEqual(cellsOf(runTable([run(1, 12), second]), 'signed out: one process'), ['12', '0 (2 waited)'])
})

test('with more than three runs, a cell has the median and the range', t => {
  const runs = [4, 9, 0, 28].map((signedOut, index) => run(index, signedOut))
  t.deepEqual(cellsOf(runTable(runs), 'signed out: one process')[0], '9 (0 to 28)')
})

test('of 10,000 users with tokens of an hour, a fault signs out those whose refresh meets it', t => {
  const kept = { signedOut: 0, waiting: 0 }
  const outcomes = {
    'one-process': kept,
    killed: { signedOut: 10, waiting: 0 },
    'provider-3s': { signedOut: 50, waiting: 0 },
    'redis-empty': { signedOut: 25, waiting: 0 }
  }
  const text = hourTable([{ seed: 1, users: 50, programs: [{ name: 'a', title: 'Program A', outcomes }] }])
  t.deepEqual(cellsOf(text, 'process killed'), ['1.7'], '10,000 × 10/50 × 3 s / 3,600 s')
  t.deepEqual(cellsOf(text, 'provider slow, 3 s'), ['14'], '10,000 × 50/50 × 5 s / 3,600 s')
  t.deepEqual(cellsOf(text, 'Redis restarted empty'), ['5000'], 'the lifetime makes no difference')
})

test('the table of failures shows the share of the requests', t => {
  t.deepEqual(cellsOf(failureTable([run(1, 12)]), 'one process'), ['1.5 %', '0.0 %'])
})

test('the picture has a bar for each loss, a text alternative, and colours for a dark page', t => {
  const svg = picture([run(1, 50), run(2, 25)])
  t.deepEqual(
    [...svg.matchAll(/class="bar"[^>]*width="(\d+)"/g)].map(match => Number(match[1])),
    [69],
    'the bar is as long as three quarters of its track of 92'
  )
  t.true(svg.includes('<desc id="description">Program &lt;A&gt;: 50, 25 (one process).'))
  t.true(svg.includes('not possible</text>'))
  t.true(svg.includes('no result</text>'))
  t.true(svg.includes('@media (prefers-color-scheme: dark)'))
  t.false(svg.includes('<A>'), 'titles are escaped')
})
