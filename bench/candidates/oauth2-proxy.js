/** oauth2-proxy, a program in Go. By default, it keeps the session in an encrypted cookie. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { caches, startProgram, unmeasurable } from '../program.js'
import { CLIENT_ID, PROXIED_PATH } from '../settings.js'

const MODULE = 'github.com/oauth2-proxy/oauth2-proxy/v7'
export const VERSION = 'v7.15.2'

const folder = join(caches, `oauth2-proxy-${VERSION}`)
export const executable = join(folder, 'oauth2-proxy')

/**
 * Builds the program from the Go module proxy, into the cache folder of the user.
 * @returns {string | undefined} the reason why it cannot be measured here
 */
export function install() {
  if (unmeasurable || existsSync(executable)) return unmeasurable
  if (spawnSync('go', ['version']).error) return 'Go is not installed. See https://go.dev/doc/install.'
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'go.mod'), `module bench\n\ngo 1.25.0\n\nrequire ${MODULE} ${VERSION}\n`)
  const env = { ...process.env, GOFLAGS: '-mod=mod', CGO_ENABLED: '0' }
  const partial = `${executable}.part`
  const { status, stderr } = spawnSync('go', ['build', '-o', partial, MODULE], { cwd: folder, env, encoding: 'utf8' })
  if (status !== 0) return `\`go build\` failed: ${stderr.trim().split('\n').at(-1)}`
  renameSync(partial, executable)
  return undefined
}

/** @type {import('./common.js').Start} */
export function start({ secret, providerUrl, wwwroot }) {
  return startProgram(({ port, origin }) => ({
    command: executable,
    args: [
      `--http-address=127.0.0.1:${port}`,
      '--provider=oidc',
      `--oidc-issuer-url=${providerUrl}`,
      `--client-id=${CLIENT_ID}`,
      `--redirect-url=${origin}/oauth2/callback`,
      `--upstream=file://${wwwroot}/#/`,
      `--upstream=${providerUrl}${PROXIED_PATH}/`,
      '--pass-access-token',
      '--email-domain=*',
      '--insecure-oidc-allow-unverified-email',
      '--cookie-secure=false',
      '--skip-provider-button',
      '--request-logging=false'
    ],
    env: {
      GOMAXPROCS: '1',
      OAUTH2_PROXY_CLIENT_SECRET: secret,
      OAUTH2_PROXY_COOKIE_SECRET: createHash('sha256').update(secret).digest('base64url')
    }
  }))
}
