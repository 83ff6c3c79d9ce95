/** The saved results of the runs, one file for each seed, kind of provider and kind of page. */
import { readFile, writeFile } from 'node:fs/promises'
import { REUSES } from './logins.js'
import { PAGES } from './user.js'

/**
 * Adds the results of a run to those of earlier runs with the same seed and kinds, so that the cases of a seed can be played one
 * after the other. A case that was played again replaces its earlier result.
 * @param {import('./measure.js').LostRun} run
 */
export async function saveRun(run) {
  const kinds = [run.reuse, run.pages].filter(kind => kind !== REUSES[0] && kind !== PAGES[0])
  const file = new URL(`../results/lost-${[run.seed, ...kinds].join('-')}.json`, import.meta.url)
  const { programs: saved } = await readRun(file)
  const added = run.programs.map(({ outcomes, ...program }) => {
    const before = saved.find(({ name }) => name === program.name)
    return { ...before, ...program, outcomes: { ...before?.outcomes, ...outcomes } }
  })
  const kept = saved.filter(({ name }) => !added.some(program => program.name === name))
  await writeFile(file, `${JSON.stringify({ ...run, programs: [...kept, ...added] }, null, 2)}\n`)
}

async function readRun(file) {
  try {
    return JSON.parse(await readFile(file, 'utf8'))
  } catch (error) {
    if (error.code === 'ENOENT') return { programs: [] }
    throw error
  }
}
