/** The saved results of the complete runs, one file for each seed, kind of provider and kind of page. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { REUSES } from './logins.js'
import { PAGES } from './user.js'

const FOLDER = new URL('../results/', import.meta.url)
const PREFIX = 'lost-'

/** @param {import('./measure.js').LostRun} run */
export async function saveRun(run) {
  await mkdir(FOLDER, { recursive: true })
  await writeFile(
    new URL(`${PREFIX}${[run.seed, ...kindsOf(run)].join('-')}.json`, FOLDER),
    `${JSON.stringify(run, null, 2)}\n`
  )
}

/** The kinds of provider and page that are not the usual ones. @param {import('./measure.js').LostRun} run */
function kindsOf({ reuse, pages }) {
  return [reuse, pages].filter(kind => kind && kind !== REUSES[0] && kind !== PAGES[0])
}

/** @returns {Promise<import('./measure.js').LostRun[]>} in the order of their seeds */
export async function readRuns() {
  const names = (await readdir(FOLDER)).filter(name => name.startsWith(PREFIX) && name.endsWith('.json'))
  const runs = await Promise.all(names.map(async name => JSON.parse(await readFile(new URL(name, FOLDER), 'utf8'))))
  return runs.sort((a, b) => a.seed - b.seed)
}
