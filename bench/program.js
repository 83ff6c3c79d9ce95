/** Starts programs that are not part of this process, signs in to them, and measures their processes. */
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { chmod, mkdtemp, writeFile } from 'node:fs/promises'
import net from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { cookieFrom } from './candidates/common.js'
import { get } from './get.js'
import { freePort } from './ports.js'
import { usageOfGroup } from './usage.js'

/** The folder of the programs that were built for the benchmark. */
export const caches = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'platform-auth-server-bench')

const LONGEST_START_MS = 10_000
const LONGEST_END_MS = 3000
const BETWEEN_LOOKS_MS = 20
const LONGEST_COMPLAINT = 4000
const MAX_REDIRECTS = 10

/** The reason why a program cannot be measured here, or undefined. */
export const unmeasurable = process.platform === 'linux' ? undefined : 'its processes can be measured on Linux only'

/**
 * @typedef {{ folder: string, port: number, origin: string }} Place the temporary folder of a program, and where it must listen
 * @typedef {{ command: string, args: string[], files?: Record<string, string>, env?: Record<string, string>, cwd?: string }} Program
 *   `files` are the contents of the files in the folder, by their names
 */

/** The programs that run, by their process groups. */
const running = new Map()

process.on('exit', () => {
  for (const [group, folder] of running) forget(group, folder)
})

/**
 * Starts a program. It runs on the core of this process, and ends with this process.
 * @param {(place: Place) => Program} describe
 * @returns {Promise<import('./candidates/common.js').Candidate>}
 */
export async function startProgram(describe) {
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit())
  const { place, usage, end } = await launch(describe)
  return { port: place.port, cookie: () => signIn(place.origin), usage, end }
}

/**
 * Starts a program, and waits until it listens.
 * @param {(place: Place) => Program} describe
 * @param {number} [port] a free port, unless one is given
 */
export async function launch(describe, port) {
  const folder = await mkdtemp(join(tmpdir(), 'bench-program-'))
  // Apache's processes change to another user, who must be able to read the files.
  await chmod(folder, 0o755)
  const place = { folder, port: port ?? (await freePort()), origin: '' }
  place.origin = `http://127.0.0.1:${place.port}`
  const { command, args, files = {}, env, cwd } = describe(place)
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)

  // The process group of the program contains its children, which are measured and ended with it.
  const child = spawn(command, args, {
    detached: true,
    env: { ...process.env, ...env },
    cwd,
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const group = child.pid
  if (group !== undefined) running.set(group, folder)
  let printed = ''
  for (const output of [child.stdout, child.stderr]) {
    output.on('data', data => {
      printed = (printed + data).slice(-LONGEST_COMPLAINT)
    })
  }
  const ended = new Promise((resolve, reject) => child.once('close', resolve).once('error', reject))
  const endedEarly = ended.then(code => {
    throw new Error(`${command} ended with code ${code}: ${printed}`)
  })
  // Later ends are expected.
  endedEarly.catch(() => {})
  await Promise.race([listening(place.port), endedEarly])
  return {
    place,
    usage: () => usageOfGroup(group),
    signal: name => process.kill(-group, name),
    printed: () => printed,
    async end(signal = 'SIGTERM', longestMs = LONGEST_END_MS) {
      child.kill(signal)
      await Promise.race([ended, setTimeout(longestMs)])
      forget(group, folder)
      await ended
    }
  }
}

function forget(group, folder) {
  running.delete(group)
  try {
    process.kill(-group, 'SIGKILL')
  } catch {
    // The group has ended already, or the program could not be started.
  }
  rmSync(folder, { recursive: true, force: true })
}

async function listening(port) {
  const deadline = Date.now() + LONGEST_START_MS
  while (!(await connects(port))) {
    if (Date.now() > deadline) throw new Error(`Nothing listens on port ${port} after ${LONGEST_START_MS} ms.`)
    await setTimeout(BETWEEN_LOOKS_MS)
  }
}

function connects(port) {
  return new Promise(resolve => {
    const socket = net.connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/**
 * Opens the address as a browser would, and follows all redirects to the provider and back. The provider signs everyone in.
 * Returns the `Cookie` header that the browser would send afterwards.
 * @param {string} origin
 */
async function signIn(origin) {
  const cookies = new Map()
  let url = origin
  for (let redirects = 0; redirects < MAX_REDIRECTS; redirects++) {
    const headers = { accept: 'text/html', cookie: [...cookies.values()].join('; ') }
    const response = await get({ url, headers })
    for (const setCookie of response.headers['set-cookie'] ?? []) {
      const cookie = cookieFrom([setCookie])
      const [name, value] = cookie.split('=', 2)
      if (value) cookies.set(name, cookie)
      else cookies.delete(name)
    }
    const { location } = response.headers
    if (location === undefined) {
      if (redirects === 0 || cookies.size === 0) throw new Error(`${url} answered ${response.status} without a login`)
      return [...cookies.values()].join('; ')
    }
    url = new URL(location, url).href
  }
  throw new Error(`${origin} redirects more than ${MAX_REDIRECTS} times`)
}
