/** The picture of the comparison: one bar for each program and case, as long as the share of users who were signed out. */
import { absentText, casesOf, joined, lostUsers, resultsOf } from './tables.js'

const LABEL_WIDTH = 270
const COLUMN_WIDTH = 118
const BAR_WIDTH = 92
const ROW_HEIGHT = 38
const HEAD_HEIGHT = 62
const FOOT_HEIGHT = 48
/** Without these conditions the picture is not true, so they are a part of it. */
const CONDITIONS =
  'The provider ends the login at a second use of a refresh token. Tokens are refreshed after about 2 s, so by every user during each fault. Pages send 6 requests in parallel.'
const BAR_HEIGHT = 12

/** The page has the other cases: those without Redis, and those of which a program takes part in few. */
const SHOWN = [
  'two-processes',
  'provider-3s',
  'provider-12s',
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
 */
export function picture(runs, kills = []) {
  const [{ users }] = runs
  const played = casesOf(runs).filter(({ name }) => SHOWN.includes(name))
  const programs = runs[0].programs.filter(({ outcomes }) => played.some(({ name }) => outcomes[name]))
  const width = LABEL_WIDTH + played.length * COLUMN_WIDTH
  const height = HEAD_HEIGHT + programs.length * ROW_HEIGHT + FOOT_HEIGHT
  const rows = programs.map((program, index) => {
    const outcomesOf = which => resultsOf([...runs, ...kills], program.name).map(({ outcomes }) => outcomes[which])
    return row(program, played, outcomesOf, users, HEAD_HEIGHT + index * ROW_HEIGHT)
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">
<title id="title">Users who were signed out although their login should have continued, of ${users}</title>
<desc id="description">${escaped(description(runs, kills))}</desc>
<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.quiet { fill: #59636e }
.track { fill: #d1d9e0 }
.bar { fill: #cf222e }
.none { fill: #1a7f37; font-weight: 600 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.quiet { fill: #9198a1 }
.track { fill: #3d444d }
.bar { fill: #ff7b72 }
.none { fill: #56d364 }
}
</style>
<text x="0" y="18">Signed out, of ${users} users</text>
${played.map(({ title }, index) => heading(title, LABEL_WIDTH + index * COLUMN_WIDTH)).join('\n')}
${rows.join('\n')}
<text class="quiet" x="0" y="${height - 28}">${CONDITIONS}</text>
<text class="quiet" x="0" y="${height - 10}">${escaped(foot(runs, kills))}</text>
</svg>
`
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

function row({ title }, played, outcomesOf, users, y) {
  const cells = played.map(({ name }, index) => cell(outcomesOf(name), users, LABEL_WIDTH + index * COLUMN_WIDTH, y))
  return `<text x="0" y="${y + 20}">${escaped(title.replaceAll('`', ''))}</text>${cells.join('')}`
}

function cell(outcomes, users, x, y) {
  const known = outcomes.filter(outcome => outcome?.signedOut !== undefined)
  if (known.length === 0) {
    return `<text class="quiet" x="${x}" y="${y + 20}">${joined(outcomes.map(absentText))}</text>`
  }
  const mean = known.reduce((sum, { signedOut }) => sum + signedOut, 0) / known.length
  // A few users must still be visible.
  const length = mean === 0 ? 0 : Math.max(2, Math.round((BAR_WIDTH * mean) / users))
  const label = joined(known.map(lostUsers))
  return [
    `<rect class="track" x="${x}" y="${y + 20}" width="${BAR_WIDTH}" height="${BAR_HEIGHT}" rx="2"/>`,
    length > 0 ? `<rect class="bar" x="${x}" y="${y + 20}" width="${length}" height="${BAR_HEIGHT}" rx="2"/>` : '',
    `<text${mean === 0 ? ' class="none"' : ''} x="${x}" y="${y + 15}">${label}</text>`
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
      const outcomes = resultsOf([...runs, ...kills], name).map(({ outcomes }) => outcomes[which.name])
      const known = outcomes.filter(outcome => outcome?.signedOut !== undefined)
      if (known.length === 0) return []
      return `${joined(known.map(lostUsers))} (${which.title})`
    })
    return `${title}: ${parts.join('; ')}.`
  })
  return sentences.join(' ')
}

function foot(runs, kills) {
  const seeds = runs.map(({ seed }) => seed).join(' and ')
  if (runs.length === 1) return `One run with the seed ${seeds}.`
  const both = `${runs.length} runs with the seeds ${seeds}. If they differ, both numbers are shown, and the bar is their mean.`
  return kills.length === 0
    ? both
    : `${both} Process killed: up to ${runs.length + kills.length} runs, median and range. –: not measured.`
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
