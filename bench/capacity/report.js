/** Prints the results of `replicas` and `per-core`. With `--record`, writes them to figures.json and docs/scale.md. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fillTables, tablesOf } from './page.js'

const FIGURES = new URL('figures.json', import.meta.url)
const PAGE = new URL('../../docs/scale.md', import.meta.url)

/**
 * @param {import('../replicas.js').Replicas | undefined} replicas
 * @param {import('../options.js').Options} options
 */
export function replicasReport(replicas, options) {
  const title = '\n## replicas: the work of one Redis, with 1 to 20 server processes\n\n'
  if (!replicas) return `${title}skipped, because neither redis-server nor valkey-server is installed\n`
  if (options.record) record({ replicas })
  const headings = {
    processes: 'Measured: what one event costs, by the number of processes',
    'busy-redis': 'Measured: CPU time of a busy Redis',
    'one-redis': 'Computed: what one Redis carries',
    deployments: 'Computed: the load of one Redis',
    restore: 'Computed: what processes store again when Redis has lost its data',
    cluster: 'Computed: each master of a cluster, with 1,000 replicas and 1,000,000 sessions'
  }
  const tables = tablesOf({ replicas })
  const parts = Object.entries(headings).map(([name, heading]) => `### ${heading}\n\n${tables[name]}`)
  return title + parts.join('\n')
}

/**
 * @param {import('../per-core.js').PerCoreRow[]} perCore
 * @param {import('../options.js').Options} options
 */
export function perCoreReport(perCore, options) {
  if (options.record) record({ perCore })
  return `\n## per-core: per core and per megabyte, beside other programs\n\n${tablesOf({ perCore })['per-core']}`
}

/**
 * Replaces some of the recorded figures, and the tables of the page that are computed from them.
 * @param {Record<string, unknown>} changed
 */
export function record(changed) {
  const before = existsSync(FIGURES) ? JSON.parse(readFileSync(FIGURES, 'utf8')) : {}
  const machine = `${cpus()[0]?.model.trim()}, ${cpus().length} cores, Node ${process.version}`
  const figures = { ...before, machine, ...changed }
  writeFileSync(FIGURES, `${JSON.stringify(figures, undefined, 2)}\n`)
  writeFileSync(PAGE, fillTables(readFileSync(PAGE, 'utf8'), tablesOf(figures)))
}
