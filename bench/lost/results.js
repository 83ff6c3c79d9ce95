/** The saved results of the runs, one file for each seed, kind of provider and kind of page. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { cases } from './cases.js'
import { REUSES } from './logins.js'
import { programs } from './programs/index.js'
import { PAGES } from './user.js'

const FOLDER = new URL('../results/', import.meta.url)
const PREFIX = 'lost-'

/**
 * Adds the results of a run to those of earlier runs with the same seed and kinds, so that the cases of a seed can be played one
 * after the other. A case that was played again replaces its earlier result.
 * @param {import('./measure.js').LostRun} run
 */
export async function saveRun(run) {
  await mkdir(FOLDER, { recursive: true })
  const file = new URL(`${PREFIX}${[run.seed, ...kindsOf(run)].join('-')}.json`, FOLDER)
  const saved = await readRun(file)
  if (saved && saved.users !== run.users) throw new Error(`The saved run of this seed has ${saved.users} users.`)
  await writeFile(
    file,
    `${JSON.stringify({ ...run, programs: merged(saved?.programs ?? [], run.programs) }, null, 2)}\n`
  )
}

/**
 * @param {import('./measure.js').ProgramResult[]} saved
 * @param {import('./measure.js').ProgramResult[]} added
 */
function merged(saved, added) {
  const names = programs.map(({ name }) => name).filter(name => [...saved, ...added].some(one => one.name === name))
  return names.map(name => {
    const [before, now] = [saved, added].map(results => results.find(one => one.name === name))
    return { ...before, ...now, outcomes: { ...before?.outcomes, ...withoutLogs(now?.outcomes ?? {}) } }
  })
}

/** Only the log of a run shows the responses. */
function withoutLogs(outcomes) {
  return Object.fromEntries(
    Object.entries(outcomes).map(([name, { statuses: _statuses, samples: _samples, ...kept }]) => [name, kept])
  )
}

async function readRun(file) {
  try {
    return JSON.parse(await readFile(file, 'utf8'))
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

/** The kinds of provider and page that are not the usual ones. @param {import('./measure.js').LostRun} run */
function kindsOf({ reuse, pages }) {
  return [reuse, pages].filter(kind => kind && kind !== REUSES[0] && kind !== PAGES[0])
}

/**
 * Reads the saved runs, in the order of their seeds, with today's titles of the programs, and with what programs without Redis need
 * not play.
 * @returns {Promise<import('./measure.js').LostRun[]>}
 */
export async function readRuns() {
  const names = (await readdir(FOLDER)).filter(name => name.startsWith(PREFIX) && name.endsWith('.json'))
  const runs = await Promise.all(names.map(async name => JSON.parse(await readFile(new URL(name, FOLDER), 'utf8'))))
  return runs
    .map(withTitles)
    .map(withCasesOfRedis)
    .sort((a, b) => a.seed - b.seed)
}

function withTitles(run) {
  const titles = new Map(programs.map(({ name, title }) => [name, title]))
  return { ...run, programs: run.programs.map(one => ({ ...one, title: titles.get(one.name) ?? one.title })) }
}

/** A program without Redis plays no case that harms Redis, and its case with two processes is also the one without Redis. */
function withCasesOfRedis(run) {
  const played = cases.filter(({ name }) => run.programs.some(({ outcomes }) => name in outcomes))
  const withoutRedis = programs.filter(({ redis }) => redis === 'never').map(({ name }) => name)
  function outcomesOf({ outcomes }) {
    const absent = played
      .filter(({ needsRedis }) => needsRedis)
      .map(({ name }) => [name, { leftOut: 'it has no Redis' }])
    const alone = outcomes['two-processes'] && played.some(({ name }) => name === 'two-alone')
    return { ...Object.fromEntries(absent), ...outcomes, ...(alone && { 'two-alone': outcomes['two-processes'] }) }
  }
  return {
    ...run,
    programs: run.programs.map(one => (withoutRedis.includes(one.name) ? { ...one, outcomes: outcomesOf(one) } : one))
  }
}
