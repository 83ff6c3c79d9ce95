/** What the programs of the comparison have in common. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CALLBACK_URL } from '../../settings.js'

/**
 * What a program needs to know to run.
 * @typedef {object} Setting
 * @property {string} secret the same for all processes of a case
 * @property {string} providerUrl
 * @property {string} apiUrl the API that needs an access token
 * @property {number} lifetimeSeconds of access tokens
 * @property {string} [redisUrl]
 *
 * @typedef {object} Compared
 * @property {string} name
 * @property {string} title
 * @property {number} lifetimeSeconds the lifetime of access tokens. If the program refreshes earlier, the lifetime is longer, so
 *   that every program refreshes a session after about 2 s
 * @property {string} loginPath
 * @property {string} path the path that the pages ask for
 * @property {boolean} [isSticky] a user stays at one process while it listens
 * @property {NodeJS.Signals} [stopSignal] the signal with which a supervisor ends the program, if it is not SIGTERM
 * @property {'always' | 'two processes' | 'never'} redis when the program has a Redis
 * @property {() => string | undefined} [install] returns the reason why the program cannot run here
 * @property {() => string} version
 * @property {(place: import('../../program.js').Place, setting: Setting) => import('../../program.js').Program} describe
 */

/** The seconds after which every program refreshes a session. */
export const REFRESH_SECONDS = 2

/** The public address of every program. Users send it as `Host`, whichever process they connect to. */
export const ORIGIN = new URL(CALLBACK_URL).origin

/**
 * Returns the program that runs a Node candidate of the benchmark.
 * @param {string} name the file in `bench/candidates/`
 * @param {import('../../program.js').Place} place
 * @param {Setting} setting
 */
export function nodeProgram(name, { port, folder }, setting) {
  return {
    command: process.execPath,
    args: [fileURLToPath(new URL('../serve-node.js', import.meta.url)), name],
    env: { NODE_ENV: 'production', LOST_BENCH: JSON.stringify({ ...setting, port, wwwroot: folder }) }
  }
}

/** @param {string} name a package in `bench/node_modules` */
export function packageVersion(name) {
  return JSON.parse(readFileSync(new URL(`../../node_modules/${name}/package.json`, import.meta.url), 'utf8')).version
}
