/** Measures a large download through the proxy, beside nginx. */
import { missing } from './candidates/nginx.js'
import { startCandidates } from './lineup.js'
import { median, table } from './report.js'
import { SERVER } from './scenarios.js'
import { PROXIED_PATH } from './settings.js'

const MEBIBYTE = 2 ** 20
const BYTES = 100 * MEBIBYTE
const CHECKED_BYTES = 2048
const ENTRANTS = ['nginx', SERVER].map(name => ({ name, file: name }))

/** @type {import('./ratios.js').Measurement} */
export async function measureDownload(around, { rounds }) {
  if (missing) return { text: `\n## download: skipped, because ${missing}\n` }
  const path = `${PROXIED_PATH}/bytes-${CHECKED_BYTES}`
  const scenario = { path, isRight: ({ body }) => body.length === CHECKED_BYTES }
  const { candidates, stop } = await startCandidates(scenario, ENTRANTS, around)
  try {
    const readings = candidates.map(() => [])
    // The first round is not counted.
    for (let round = 0; round <= rounds; round++) {
      for (const [index, candidate] of candidates.entries()) readings[index].push(await download(candidate, around))
    }
    const [nginx, ours] = readings
    const ratio = median(ours.slice(1).map(({ seconds }, round) => seconds / nginx[round + 1].seconds))
    const rows = candidates.map(({ name }, index) => rowOf(name, readings[index]))
    const title = `\n## download: ${BYTES / MEBIBYTE} MiB, one after the other\n\n`
    return {
      text: title + table(['', 'MiB/s', 'CPU ms', 'MiB after one', 'after all'], rows),
      ratios: { download: ratio }
    }
  } finally {
    await stop()
  }
}

async function download({ process, request }, { load }) {
  const before = await process.ask('usage')
  const seconds = await load.ask('download', {
    ...request,
    url: request.url.replace(CHECKED_BYTES, BYTES),
    bytes: BYTES
  })
  const { cpuMicros, residentBytes } = await process.ask('usage')
  return { seconds, cpuMillis: (cpuMicros - before.cpuMicros) / 1000, mebibytes: residentBytes / MEBIBYTE }
}

function rowOf(name, [first, ...others]) {
  const medianOf = pick => Math.round(median(others.map(pick)))
  return [
    name,
    medianOf(({ seconds }) => BYTES / MEBIBYTE / seconds),
    medianOf(({ cpuMillis }) => cpuMillis),
    ...[first, others.at(-1)].map(({ mebibytes }) => Math.round(mebibytes))
  ]
}
