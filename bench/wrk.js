/** Runs the load generator wrk. It needs less CPU time than autocannon, so it can also measure very fast servers. */
import { spawn, spawnSync } from 'node:child_process'

export const hasWrk = !spawnSync('wrk', ['--version']).error

// The units of the durations that wrk prints, in milliseconds.
const MILLISECONDS = { us: 0.001, ms: 1, s: 1000 }

/**
 * Rejects if a response has a status of 400 or above, or if a connection fails. wrk does not report redirects, but the requested
 * files are never redirected.
 * @param {import('./load.js').Job} job
 */
export async function runWrk({ url, headers, connections, seconds }) {
  const options = ['--threads', '1', '--connections', String(connections), '--duration', `${seconds}s`, '--latency']
  const headerOptions = Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`])
  const report = await outputOf('wrk', [...options, ...headerOptions, url])
  const failure = /^\s*(Non-2xx|Socket errors).*$/m.exec(report)
  if (failure) throw new Error(`${url}: ${failure[0].trim()}`)
  const [, requests, took] = /(\d+) requests in ([\d.]+)s/.exec(report)
  const [, p99, unit] = /99%\s+([\d.]+)(us|ms|s)/.exec(report)
  return { requests: Number(requests), seconds: Number(took), p99: Math.round(p99 * MILLISECONDS[unit]) }
}

function outputOf(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', data => {
      output += data
    })
    child.once('error', reject).once('close', code => {
      if (code === 0) resolve(output)
      else reject(new Error(`${command} ended with code ${code}: ${output}`))
    })
  })
}
