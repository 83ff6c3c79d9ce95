/**
 * The picture of the comparison. Each program and case has a bar for pages that send their requests in parallel, and a second
 * one for pages that load a document first, if they were measured.
 */
import { absentText, casesOf, joined, lostUsers, resultsOf } from './tables.js'

const LABEL_WIDTH = 215
const COLUMN_WIDTH = 124
const BAR_WIDTH = 92
const BAR_HEIGHT = 8
const LINE_HEIGHT = 26
const ROW_HEIGHT = 2 * LINE_HEIGHT + 8
const HEAD_HEIGHT = 62
const FOOT_HEIGHT = 120
/** Without these conditions the picture is not true, so they are a part of it. */
const CONDITIONS = [
  'Worst case: the provider ends the login at a second use of a refresh token, tokens are refreshed every 2 to 3 s, and a user loads a page every 1 to 2 s. Cut: half of all pages.',
  'Upper number: a page sends 6 requests in parallel. Lower number (“doc”): it loads a document first, as a framework does.',
  '“Errors”: the users who got errors for some time, but stayed signed in. They are shown where no user was signed out. A signed-out user may be able to sign in again without a password.',
  'With a provider that is slow by 70 s, or without Redis, two processes of this server sign out all users. With session.store: redis, so does a Redis that restarts empty after users were idle for a minute.'
]

/** The page has the other cases. More columns would be too small to read in the README. */
const SHOWN = [
  'two-processes',
  'provider-3s',
  'provider-12s',
  'provider-70s',
  'killed',
  'stopped',
  'stopped-90s',
  'redis-empty',
  'redis-file',
  'cut'
]

/**
 * @param {import('./measure.js').LostRun[]} runs
 * @param {import('./measure.js').LostRun[]} [kills] further runs that played only the kill
 * @param {import('./measure.js').LostRun[]} [documents] the runs with pages that load a document first
 */
export function picture(runs, kills = [], documents = []) {
  const [{ users }] = runs
  const played = casesOf(runs).filter(({ name }) => SHOWN.includes(name))
  const programs = runs[0].programs.filter(({ outcomes }) => played.some(({ name }) => outcomes[name]))
  const width = LABEL_WIDTH + played.length * COLUMN_WIDTH
  const height = HEAD_HEIGHT + programs.length * ROW_HEIGHT + FOOT_HEIGHT
  const rows = programs.map(({ name, title }, index) => {
    const y = HEAD_HEIGHT + index * ROW_HEIGHT
    const cells = played.map((which, column) => {
      const x = LABEL_WIDTH + column * COLUMN_WIDTH
      const byDocument = outcomesOf(documents, name, which)
      return [
        bar(outcomesOf(runsOf(which), name, which), users, x, y),
        isKnown(byDocument) ? bar(byDocument, users, x, y + LINE_HEIGHT, 'doc ') : ''
      ].join('')
    })
    const [first, ...rest] = title.replaceAll('`', '').split(', ')
    const labels = [rest.length > 0 ? `${first},` : first, rest.join(', ')].map(
      (line, index) => `<text x="0" y="${y + 15 + index * 17}">${escaped(line)}</text>`
    )
    return [...labels, ...cells].join('')
  })
  const feet = [...CONDITIONS, foot(runs, kills)].map(
    (line, index) => `<text class="quiet" x="0" y="${height - FOOT_HEIGHT + 36 + index * 18}">${escaped(line)}</text>`
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">
<title id="title">Users who were signed out although their login should have continued, of ${users}</title>
<desc id="description">${escaped(description(runs, kills))}</desc>
<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.quiet { fill: #59636e }
.track { fill: #d1d9e0 }
.bar { fill: #cf222e }
.none { fill: #1a7f37; font-weight: 600 }
.errors { fill: #9a6700 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.quiet { fill: #9198a1 }
.track { fill: #3d444d }
.bar { fill: #ff7b72 }
.none { fill: #56d364 }
.errors { fill: #d29922 }
}
</style>
<text x="0" y="18">Signed out, of ${users} users</text>
${played.map(({ title }, index) => heading(title, LABEL_WIDTH + index * COLUMN_WIDTH)).join('\n')}
${rows.join('\n')}
${feet.join('\n')}
</svg>
`

  function runsOf({ name }) {
    return name === 'killed' ? [...runs, ...kills] : runs
  }
}

function outcomesOf(runs, program, { name }) {
  return resultsOf(runs, program).map(({ outcomes }) => outcomes[name])
}

function isKnown(outcomes) {
  return outcomes.some(outcome => outcome?.signedOut !== undefined)
}

function heading(title, x) {
  const [first, ...rest] = title.split(', ')
  const lines = rest.length > 0 ? [`${first},`, rest.join(', ')] : halves(first)
  return lines
    .map((line, index) => `<text class="quiet" x="${x}" y="${30 + index * 16}">${escaped(line)}</text>`)
    .join('')
}

/** Breaks a text into two lines if it is too long for a column. */
function halves(text) {
  const words = text.split(' ')
  if (text.length <= 15) return [text]
  const middle = Math.ceil(words.length / 2)
  return [words.slice(0, middle).join(' '), words.slice(middle).join(' ')]
}

function bar(outcomes, users, x, y, prefix = '') {
  const label = joined(outcomes.map(outcome => absentText(outcome) ?? lostUsers(outcome)))
  if (!isKnown(outcomes)) return `<text class="quiet" x="${x}" y="${y + 15}">${escaped(label)}</text>`
  const known = outcomes.filter(outcome => outcome?.signedOut !== undefined)
  const mean = known.reduce((sum, { signedOut }) => sum + signedOut, 0) / known.length
  const withErrors = Math.max(...known.map(({ waited = 0 }) => waited))
  const colour = withErrors > 0 ? 'errors' : 'none'
  const text = mean === 0 && withErrors > 0 ? `${label}, errors: ${withErrors}` : label
  // A few users must still be visible.
  const length = mean === 0 ? 0 : Math.max(2, Math.round((BAR_WIDTH * mean) / users))
  return [
    `<rect class="track" x="${x}" y="${y + 18}" width="${BAR_WIDTH}" height="${BAR_HEIGHT}" rx="2"/>`,
    length > 0 ? `<rect class="bar" x="${x}" y="${y + 18}" width="${length}" height="${BAR_HEIGHT}" rx="2"/>` : '',
    `<text${mean === 0 ? ` class="${colour}"` : ''} x="${x}" y="${y + 15}">${prefix}${escaped(text)}</text>`
  ].join('')
}

/**
 * The text alternative of the picture.
 * @param {import('./measure.js').LostRun[]} runs
 * @param {import('./measure.js').LostRun[]} [kills]
 */
export function description(runs, kills = []) {
  const [{ programs }] = runs
  const sentences = programs.map(({ name, title }) => {
    const parts = casesOf(runs).flatMap(which => {
      const outcomes = outcomesOf(which.name === 'killed' ? [...runs, ...kills] : runs, name, which)
      if (!isKnown(outcomes)) return []
      return `${joined(outcomes.map(outcome => absentText(outcome) ?? lostUsers(outcome)))} (${which.title})`
    })
    return `${title}: ${parts.join('; ')}.`
  })
  return sentences.join(' ')
}

function foot(runs, kills) {
  const runsInWords = runs.length === 1 ? '1 run' : `${runs.length} runs`
  const kill = kills.length === 0 ? '' : ` Process killed: ${runs.length + kills.length} runs, median and range.`
  return `Each number is from ${runsInWords} unless it says otherwise. If the runs differ, all numbers are shown.${kill} The bar is the mean. –: not measured.`
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
