/** Makes the picture and the table of docs/comparison.md from bench/results/: `node scripts/comparison.js`. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { argv } from 'node:process'
import { fileURLToPath } from 'node:url'
import { median, table } from '../bench/report.js'

const RESULTS = new URL('../bench/results/', import.meta.url)
const PAGE = new URL('../docs/comparison.md', import.meta.url)
const PICTURE = new URL('../docs/comparison.svg', import.meta.url)
/** The table is between its comment and the next empty line. */
const TABLE = /(?<=<!-- The table .*? -->\n\n)(?:\|.*\n)+/

const PROGRAMS = {
  'platform-auth-server': 'this server, single mode',
  'platform-auth-server-dual': 'this server, dual mode',
  'platform-auth-server-stored': 'this server, session in Redis',
  'oauth2-proxy': 'oauth2-proxy',
  wonderwall: 'wonderwall',
  'mod-auth-openidc-redis': 'mod_auth_ openidc, Redis',
  'mod-auth-openidc-client-cookie': 'mod_auth_ openidc, client-cookie'
}

/** The rows of the picture, with the names of their cases. */
const FAULTS = {
  'no fault': 'two-processes',
  'provider slow, 3 s': 'provider-3s',
  'provider slow, 12 s': 'provider-12s',
  'provider slow, 70 s': 'provider-70s',
  'provider fails, 503': 'provider-503',
  'process killed': 'killed',
  'process stopped, 6 s': 'stopped',
  'process stopped, 90 s': 'stopped-90s',
  'Redis restarts with its data': 'redis-file',
  'Redis restarts empty': 'redis-empty',
  'the same, users idle for 1 min': 'redis-empty-idle',
  'Redis stopped, 6 s': 'redis-stopped',
  'connections cut': 'cut'
}

/** The text of a cell that was not measured. */
const NONE = '–'
/** More values than this are summarized. */
const MAX_LISTED = 3

const LABEL_WIDTH = 181
const COLUMN_WIDTH = 93
const BAR_WIDTH = 78
const HEAD_HEIGHT = 74
const ROW_HEIGHT = 32

/**
 * The users who were signed out with the usual provider and page. The text is 12 pixels high at the width of a page on GitHub.
 * @param {import('../bench/lost/measure.js').LostRun[]} all
 */
export function picture(all) {
  const runs = ofKind(all, {})
  const rows = Object.entries(FAULTS).map(([title, which], index) => {
    const y = HEAD_HEIGHT + index * ROW_HEIGHT
    const cells = Object.keys(PROGRAMS).map((name, column) =>
      bar(runs, name, which, LABEL_WIDTH + column * COLUMN_WIDTH, y)
    )
    return `<text x="0" y="${y + 18}">${title}</text>${cells.join('')}`
  })
  const heads = Object.values(PROGRAMS).flatMap((title, column) =>
    title
      .split(/(?<=,|_) /)
      .map((line, index) => `<text x="${LABEL_WIDTH + column * COLUMN_WIDTH}" y="${28 + index * 15}">${line}</text>`)
  )
  const [width, height] = [
    LABEL_WIDTH + Object.keys(PROGRAMS).length * COLUMN_WIDTH - 2,
    HEAD_HEIGHT + rows.length * ROW_HEIGHT
  ]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">
<title id="title">Users who were signed out although their login should have continued, of ${runs[0].users}</title>
<desc id="description">${description(runs)}</desc>
<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.track { fill: #d1d9e0 }
.bar { fill: #cf222e }
.none { fill: #1a7f37; font-weight: 600 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.track { fill: #3d444d }
.bar { fill: #ff7b72 }
.none { fill: #56d364 }
}
</style>
<text x="0" y="28">Signed out, of ${runs[0].users} users</text>
${heads.join('\n')}
${rows.join('\n')}
</svg>
`
}

function bar(runs, name, which, x, y) {
  const known = outcomesOf(runs, name, which).filter(({ signedOut }) => signedOut !== undefined)
  const label = cell(runs, name, which, signedOut)
  if (known.length === 0) return `<text x="${x}" y="${y + 18}">${label}</text>`
  const mean = known.reduce((sum, one) => sum + one.signedOut / one.users, 0) / known.length
  // A few users must still be visible.
  const length = mean === 0 ? 0 : Math.max(2, Math.round(BAR_WIDTH * mean))
  return [
    `<text${mean === 0 ? ' class="none"' : ''} x="${x}" y="${y + 18}">${label}</text>`,
    `<rect class="track" x="${x}" y="${y + 22}" width="${BAR_WIDTH}" height="5" rx="2"/>`,
    length > 0 ? `<rect class="bar" x="${x}" y="${y + 22}" width="${length}" height="5" rx="2"/>` : ''
  ].join('')
}

/** The text alternative of the picture. */
function description(runs) {
  const sentences = Object.entries(PROGRAMS).map(([name, title]) => {
    const parts = Object.entries(FAULTS).map(([fault, which]) => `${cell(runs, name, which, signedOut)} (${fault})`)
    return `${title.replace('_ ', '_')}: ${parts.join('; ')}.`
  })
  return sentences.join(' ')
}

/**
 * What the picture does not show: other pages and providers, errors, and what each program needs.
 * @param {import('../bench/lost/measure.js').LostRun[]} all
 */
export function comparisonTable(all) {
  const usual = ofKind(all, {})
  const [documents, refuses, allows] = [{ pages: 'document-first' }, { reuse: 'refuses' }, { reuse: 'allows' }].map(
    kind => ofKind(all, kind)
  )
  const rows = [
    ['signed out, a document first: provider slow, 3 s', documents, 'provider-3s', signedOut],
    ['… provider slow, 12 s', documents, 'provider-12s', signedOut],
    ['… Redis restarts empty', documents, 'redis-empty', signedOut],
    ['… connections cut', documents, 'cut', signedOut],
    ['signed out, second use refused: provider slow, 12 s', refuses, 'provider-12s', signedOut],
    ['signed out, second use allowed: provider slow, 12 s', allows, 'provider-12s', signedOut],
    ['errors: provider slow, 12 s', usual, 'provider-12s', errors],
    ['errors: provider fails, 503', usual, 'provider-503', errors],
    ['errors: process killed', usual, 'killed', errors],
    ['errors: Redis restarts with its data', usual, 'redis-file', errors],
    ['memory of two processes, MiB', usual, 'two-processes', ({ mebibytes }) => mebibytes],
    ['CPU time of a request, µs', usual, 'two-processes', ({ cpuMicros }) => cpuMicros],
    ['`Cookie` header, bytes', usual, 'two-processes', ({ cookieBytes }) => cookieBytes],
    ['Redis for each user, bytes', usual, 'restarted', ({ redisBytes }) => redisBytes]
  ]
  const names = Object.keys(PROGRAMS)
  return table(
    ['', ...Object.values(PROGRAMS).map(title => title.replace('_ ', '_'))],
    rows.map(([title, runs, which, read]) => [title, ...names.map(name => cell(runs, name, which, read))])
  )
}

function signedOut({ signedOut }) {
  return signedOut
}

/** The users who stayed signed in but got errors. */
function errors({ signedOut, waited = 0 }, users) {
  return signedOut === users ? 'all out' : waited
}

/** The runs with this kind of provider and page. */
function ofKind(all, { reuse: wantedReuse = 'ends-login', pages: wantedPages = 'parallel' }) {
  return all.filter(({ reuse = 'ends-login', pages = 'parallel' }) => reuse === wantedReuse && pages === wantedPages)
}

/**
 * Returns the values of a program and a case in all runs, such as `0, 3`, or their median and range if there are more than three.
 * A value that is the same in all runs is written once.
 * @param {import('../bench/lost/measure.js').LostRun[]} runs
 * @param {string} program
 * @param {string} which the case
 * @param {(outcome: import('../bench/lost/measure.js').Outcome, users: number) => string | number | undefined} read
 */
function cell(runs, program, which, read) {
  const values = outcomesOf(runs, program, which).flatMap(({ users, ...outcome }) =>
    outcome.signedOut === undefined ? [] : (read(outcome, users) ?? [])
  )
  const texts = [...new Set(values.map(String))]
  if (values.length <= MAX_LISTED || texts.length === 1) return texts.join(', ') || NONE
  return `${median(values)} (${Math.min(...values)} to ${Math.max(...values)})`
}

/** Returns the outcomes of the runs that have played the case. */
function outcomesOf(runs, program, which) {
  return runs.flatMap(({ programs, users }) => {
    const outcome = programs.find(({ name }) => name === program)?.outcomes[which]
    return outcome ? [{ ...outcome, users }] : []
  })
}

/** Reads the saved runs, in the order of their seeds. */
export async function readRuns() {
  const names = (await readdir(RESULTS)).filter(name => name.startsWith('lost-'))
  const runs = await Promise.all(names.map(async name => JSON.parse(await readFile(new URL(name, RESULTS), 'utf8'))))
  return runs.sort((a, b) => a.seed - b.seed)
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const runs = await readRuns()
  await writeFile(PICTURE, picture(runs))
  await writeFile(
    PAGE,
    (await readFile(PAGE, 'utf8')).replace(TABLE, () => comparisonTable(runs))
  )
}
