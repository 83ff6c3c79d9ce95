// Apache with ModSecurity and the OWASP Core Rule Set, as Debian packages them. Sends it the requests of many sessions, and reports
// what the rules refuse. Apache needs no server behind it, because the rules read the request first.
import { spawnSync } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { createKeyring } from '#src/cookie/keyring.js'
import { newBrowserId } from '#src/login/transaction.js'
import { freePort, isAnswering } from '../../helpers/ports.js'
import type { Teardown } from '../../helpers/scope.js'
import { startService } from '../programs.js'
import type { Report } from '../suite.js'
import { APACHE_MODULES, apacheWith } from './proxies.js'

const RULES = '/usr/share/modsecurity-crs/rules'
const SESSIONS = 1000
const CONTROLS = 200

export const missingWaf = [`${APACHE_MODULES}/mod_security2.so`, RULES, '/etc/modsecurity/crs/crs-setup.conf'].every(
  existsSync
)
  ? undefined
  : 'apache2, libapache2-mod-security2 or modsecurity-crs is not installed'

/** @param paranoia the level of the rules, 1 or 2 */
export async function tryWaf(report: Report, t: Teardown, paranoia: number): Promise<void> {
  const { check, figures } = report
  const version = spawnSync('dpkg-query', ['-W', 'modsecurity-crs'], { encoding: 'utf8' }).stdout.split(/\s+/)[1]
  report.title(`Apache with the OWASP Core Rule Set ${version}, paranoia level ${paranoia}`)
  const { port, refusals } = await startApache(t, paranoia)
  const refused = (count: number, request: () => BrowserRequest) => refusedAt(port, count, request)
  const { seal } = createKeyring([randomBytes(48).toString('base64url')]).sealer('session')
  const sealed = (bytes: number) => seal(randomBytes(bytes), 'any')
  let withDots = 0
  const session = (): BrowserRequest => {
    // The sizes of a reference, of a small session, and of a session with two tokens.
    const value = sealed([100, 900, 2700][randomInt(3)] ?? 100)
    if (value.includes('..')) withDots++
    return tokenRequest(value)
  }
  const callback = (more = ''): BrowserRequest => [
    `/api/auth/callback?code=${randomBytes(24).toString('hex')}&state=${sealed(330)}${more}`,
    `__Host-platform-auth-login=${newBrowserId()}.${Date.now()}`
  ]
  const withIss = () => callback('&iss=https%3A%2F%2Fid.example')

  const sessions = await refused(SESSIONS, session)
  const callbacks = await refused(SESSIONS, () => callback())
  const ofOurs = await refusals()
  check(`${SESSIONS} sessions and ${SESSIONS} callbacks: none refused`, sessions + callbacks === 0, ofOurs)
  const dots = await refused(CONTROLS, () => tokenRequest(`${sealed(900)}..${sealed(900)}`))
  check(`${CONTROLS} values with two dots in a row: none refused`, dots === 0, await refusals())
  // The control shows that the rules are on.
  const hyphens = await refused(CONTROLS, () => tokenRequest(sealed(2700).replaceAll('.', '-')))
  const iss = await refused(CONTROLS, withIss)
  figures({ sessions, callbacks, 'sessions with two dots in a row': withDots })
  figures({
    [`of ${CONTROLS} in base64url`]: hyphens,
    [`of ${CONTROLS} callbacks with iss`]: iss,
    rules: await refusals()
  })
  if (paranoia > 1) check('base64url and iss are refused', hyphens > 0 && iss === CONTROLS)
  const excluding = await startApache(t, paranoia, await documentedExclusion())
  check(
    'with the documented exclusion, callbacks with iss pass',
    (await refusedAt(excluding.port, CONTROLS, withIss)) === 0
  )
}

type BrowserRequest = readonly [path: string, cookie: string]

function tokenRequest(sealed: string): BrowserRequest {
  return ['/api/auth/token', `__Host-platform-auth=1${sealed}`]
}

/** Sends the requests one after the other. Returns how many of them the rules refuse. The others get 404 from Apache itself. */
async function refusedAt(port: number, count: number, request: () => BrowserRequest): Promise<number> {
  const agent = new Agent({ keepAlive: true })
  let refused = 0
  for (let sent = 0; sent < count; sent++) {
    const [path, cookie] = request()
    const headers = { cookie, host: 'app.example', accept: 'text/html', 'user-agent': BROWSER }
    const status = await new Promise<number | undefined>((resolve, reject) => {
      get({ port, path, headers, agent }, response => {
        response.resume().once('end', () => resolve(response.statusCode))
      }).once('error', reject)
    })
    if (status === 403) refused++
    else if (status !== 404) throw new Error(`${path} got ${status}`)
  }
  agent.destroy()
  return refused
}

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0'

/** The rule in docs/deploy/reverse-proxy.md. */
async function documentedExclusion(): Promise<string> {
  const text = await readFile('docs/deploy/reverse-proxy.md', 'utf8')
  const [rule] = /^SecRule REQUEST_FILENAME .*$(?:\n +.*$)*/m.exec(text) ?? []
  if (rule === undefined) throw new Error('docs/deploy/reverse-proxy.md has no exclusion')
  return rule
}

async function startApache(t: Teardown, paranoia: number, exclusion = '') {
  const port = await freePort()
  const { folder, command } = await apacheWith(t, port, ['unique_id', 'security2'], folder => [
    'LimitRequestFieldSize 32768',
    'LimitRequestLine 32768',
    '<Directory />\nRequire all granted\n</Directory>',
    'Include /etc/modsecurity/modsecurity.conf-recommended',
    'SecRuleEngine On',
    'SecAuditEngine Off',
    `SecDataDir ${folder}`,
    `SecTmpDir ${folder}`,
    'Include /etc/modsecurity/crs/crs-setup.conf',
    `SecAction "id:900000,phase:1,pass,t:none,nolog,setvar:tx.paranoia_level=${paranoia},setvar:tx.blocking_paranoia_level=${paranoia}"`,
    exclusion,
    `Include ${RULES}/*.conf`
  ])
  await startService(t, command, () => isAnswering(`http://127.0.0.1:${port}`))
  return {
    port,
    /** The ids of the rules that have refused a request. */
    async refusals() {
      const text = await readFile(`${folder}/error.log`, 'utf8')
      return [...new Set([...text.matchAll(/\[id "(\d+)"\]/g)].map(([, id]) => id))].join(' ')
    }
  }
}
