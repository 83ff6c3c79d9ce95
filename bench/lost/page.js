/** Writes docs/comparison.md and docs/comparison.svg from the saved results: `node bench/lost/page.js`. */
import { writeFile } from 'node:fs/promises'
import { argv } from 'node:process'
import { fileURLToPath } from 'node:url'
import { table } from '../report.js'
import { hourTable, QUIET_SECONDS, refreshInterval } from './hour.js'
import { REUSES } from './logins.js'
import { picture } from './picture.js'
import { REFRESH_SECONDS } from './programs/common.js'
import { programs } from './programs/index.js'
import { readRuns } from './results.js'
import {
  costTable,
  errorsAtKill,
  failureTable,
  kindTable,
  lossCell,
  lossless,
  lossTable,
  resultsOf,
  waitTable
} from './tables.js'
import { PAGES } from './user.js'

const PAGE = new URL('../../docs/comparison.md', import.meta.url)
/** The other columns of these tables would say the same. */
const IN_NARROW_TABLES = [
  'platform-auth-server',
  'oauth2-proxy',
  'wonderwall',
  'mod-auth-openidc-redis',
  'mod-auth-openidc-client-cookie'
]
const PICTURE = new URL('../../docs/comparison.svg', import.meta.url)

if (argv[1] === fileURLToPath(import.meta.url)) await writePage()

export async function writePage() {
  const all = await readRuns()
  const { complete, kills } = usualRuns(all)
  const shown = runs => only(runs, ({ isVariant }) => !isVariant)
  const documents = all.filter(({ pages }) => pages === 'document-first')
  await writeFile(PICTURE, picture(shown(complete), shown(kills), shown(documents)))
  await writeFile(PAGE, page(all))
}

/** @param {import('./measure.js').LostRun[]} all */
export function page(all) {
  const { complete, kills } = usualRuns(all)
  const [{ users }] = complete
  const names = new Set(complete[0].programs.map(({ name }) => name).filter(name => !losesWithoutFault(complete, name)))
  const withLock = runs => only(runs, ({ name, isVariant }) => !isVariant && names.has(name))
  const runs = withLock(complete)
  const kindsOf = (name, values) =>
    values.map(value => withLock(value === values[0] ? complete : all.filter(run => run[name] === value)))
  const killRuns = complete.length + kills.length
  const [own, peers] = [true, false].map(isOwn =>
    runs[0].programs.map(({ name }) => name).filter(name => name.startsWith('platform-auth-server') === isOwn)
  )
  return `# Who stays signed in

<!-- \`node bench/lost/page.js\` generates this file from bench/results/. Change bench/lost/page.js instead. -->

How many users lose their login in this server and in six other programs, with the same provider, users and faults. These commands repeat a
run in a checkout (see \`bench/README.md\`):

\`\`\`sh
npm run build && npm run bench -- --only lost --users ${users} --seed ${complete[0].seed}
\`\`\`

![Bars with one row for each program and one column for each fault. The tables below have the same numbers](comparison.svg)

The picture shows the worst case. **Eight conditions decide the result**:

- **The provider ends the whole login at a second use of a refresh token**, because it assumes that the token was stolen ([RFC
  9700](https://www.rfc-editor.org/rfc/rfc9700.html#section-4.14.2)). [Other providers](#other-providers-and-pages) only refuse the second
  use, or allow it for some time. With a provider that allows a second use, the faults that we measured sign out no user in the programs
  that have a lock, except a few users of oauth2-proxy. Programs without a lock lost no login either, both without a fault and with a
  provider that is slow by 12 s. So with such a provider, the lock of this server saves no login. Logins that are lost with an empty Redis
  or a failing provider need no second use. The behaviour of APS is not documented, and we did not measure it: we have no evidence that it
  ends a login.
- **Tokens are refreshed after about ${REFRESH_SECONDS} s**, so by every user during each fault. With [tokens of an
  hour](#tokens-of-an-hour), few users refresh during a fault.
- **A page sends six requests in parallel**, so six requests find the token expired. The lower numbers in the picture are for pages whose
  HTML document is requested first, and then six requests in parallel. In oauth2-proxy, wonderwall and mod_auth_openidc, the document then
  refreshes the session alone. In this server, documents are public and refresh nothing.
- **Users load a page every 1 to 2 s**, so nearly every user sends a request while Redis is down.
- **The time limits differ**: a lock ends after 2 s in oauth2-proxy, 5 s in mod_auth_openidc and 10 s in wonderwall. This server gives up a
  token request after 60 s. A provider that is slow by 3 s or 12 s exceeds some of these limits, and one that is slow by 70 s exceeds all.
- **oauth2-proxy, wonderwall and mod_auth_openidc refresh 2 s before the expiry**, and a failing provider fails for 5 s, so tokens expire.
  With tokens that live for an hour, an operator would refresh minutes before the expiry. A failure of 5 s would then not have to sign out
  any user (not measured).
- **Half of all pages are cut** within 0.4 s in the case "connections cut". If users leave fewer pages, fewer of them lose their login.
- **Users do not sign in again.** A browser may need no password for that, if the session at the provider still lasts: oauth2-proxy and
  mod_auth_openidc send it to the provider when it loads the next document, and wonderwall with automatic login. The simulated users do not
  follow this redirect. With this server, the page has to start the login.

## Users who were signed out

The users who were signed out, of ${users}, in ${complete.length} runs with different seeds. If the runs differ, the cell has the value of
each run. "(1 run)" means that only one run has a result. The rows about the kill have the median and the range of ${killRuns} runs. Two
processes share a Redis unless the row or the program says otherwise. A dash was not measured.

${lossTable(runs, withLock(kills))}
- No program of this table lost a login in these cases: ${lossless(runs).join('; ')}.
- **Signed out**: the program refuses three requests in a row after the fault, and either the provider has ended the login or the program
  has deleted its cookies. All other users are watched for another 10 s, or for 75 s if they get errors, because some programs recover. "2
  waited" means that two users still got errors at the end of this time. For express-openid-connect and better-auth, "signed out" means that
  no access token can be obtained any more. We did not check whether their session itself continues.
- **When a process is killed**, about half of the refreshes in progress are in the killed process and can be lost, so about 0.5 is expected
  in the last row. The differences between the programs are not larger than chance. On average over the runs,
  ${errorsAtKill([...complete, ...kills], own)} of the users of this server got errors, and ${errorsAtKill([...complete, ...kills], peers)}
  users of each other program in this table.
- **Without Redis**, two processes of this server lose every login. mod_auth_openidc with client-cookie and sticky sessions has no Redis
  that could fail, and lost no login with two processes and no fault.

These configurations have no lock, or no lock between processes, or only one process:

${otherTable(all)}
The last four columns are for two processes without a fault. We measured the cookie store of oauth2-proxy, its default, with no fault: it
has no Redis that could fail. "errors" is the number of users who stayed signed in but got errors, from the worse run. We do not know why
express-openid-connect does not recover if the provider refuses the second use. "Not sticky" means that the requests of a user go to both
servers.

## Other providers and pages

The first number in each cell is for the provider that the picture shows. The second provider only **refuses** the second use of a refresh
token, and the third one **allows** it for 30 s, as [Amazon
Cognito](https://docs.aws.amazon.com/cognito-user-identity-pools/latest/APIReference/API_RefreshTokenRotationType.html) can.

${kindTable(kindsOf('reuse', REUSES))}
With the provider that allows a second use, these users stayed signed in but got errors (the table is explained
[below](#failures-and-waits)):

${waitTable(kindsOf('reuse', REUSES).at(-1) ?? [])}
The kinds of page, with the provider of the picture: six requests in parallel / **one request first**, and then five in parallel / **a
document first**, and then six in parallel.

${kindTable(kindsOf('pages', PAGES))}
## Tokens of an hour

*Computed* by \`bench/lost/hour.js\`: the number of users, out of 10,000, that one fault signs out if tokens live for an hour. \`lost\` is
the measured share of the users who were signed out, and \`T\` the measured time between two refreshes of a user without a fault,
${refreshIntervals(runs)} s. No run had tokens that live for an hour, so the formulas are assumptions:

- **Slow or failing provider, cut connections**: during a fault of \`L\` seconds, a user of the test refreshes \`n = max(1, L / T)\` times,
  each time with the same risk. With tokens of an hour, a fraction of \`L / 3,600\` of the users refreshes during the fault, so the number
  is \`10,000 × (1 − (1 − lost)^(1/n)) × L / 3,600\`.
- **Killed or restarted processes**: only the refreshes in progress at that moment are lost, which is \`10,000 × lost × T / 3,600\` users.
- **Stopped processes**: the lower number assumes the same. The upper number, \`10,000 × lost × L / 3,600\`, is for the
  case that every refresh that becomes due during the stop has the risk \`lost\`.
- **Redis**: the share that was signed out with tokens of 10 minutes, so without a refresh. The other lost logins are computed in the same
  way as those of a killed process. A **busy** page sends requests every 1 to 2 s. A **quiet** page sends one every ${QUIET_SECONDS} s, so
  its user meets an outage of 1 s with a probability of at most 1/${QUIET_SECONDS}, and is forgotten by processes that remember the last
  minute ("users idle for a minute" above).

For the other faults, it makes no difference how often a page sends requests, because a user refreshes only once an hour. The table is for
the provider and the six parallel requests of the picture. If pages load a document first, the rows of a provider that is slow by 3 s or 12
s are about 0 for oauth2-proxy and mod_auth_openidc. The rows of a failing provider assume that a refresh is due only 2 s before the expiry.
An operator would set a longer time.

${hourTable(runs, withLock(kills))}
## Failures and waits

This server keeps logins by responding with 503, so with most faults **its users see more errors** than users of the other programs. Cells
have the users who stayed signed in but got at least one response without data, the number of all who stayed, and the longest time until
such a user got data again, from the worst run. Without a fault, no user waited. The provider and the pages are the same as in the picture.

${waitTable(runs, withLock(kills))}
The requests that failed until everyone's outcome was known, and the time in which 99 % of the responses arrived, from the worst run.
Requests of users who had been signed out count as failed, so where many logins were lost, this share is high for this reason alone. **Two
to six runs shared two cores, except for the kill, so response times, and also the lost logins of programs without a lock, show the load of
the machine, and differences below a second say nothing about a program.**

${failureTable(narrow(runs), narrow(kills))}
## What each program needs

With two processes and no fault. The memory is the proportional set size of both processes, and the CPU time is that of one request, both
without Redis. The CPU time is missing if fewer than 90 % of the requests were served. The token requests are those of a user in 24 s.
Access tokens are 1,000 bytes long. Apache may start 25 processes with 64 threads each. The last column is the memory of all keys in Redis
for each user, from the runs in which both processes were restarted. This server keeps tokens in Redis even if the session is in cookies.
mod_auth_openidc keeps the result of each refresh for 30 s, so a user who refreshes every 2 to 3 s has about ten results in Redis. With
tokens of an hour, a user seldom has one. mod_auth_openidc without Redis was measured while other runs shared the cores, so its CPU time and
memory are not comparable with those of the other rows.

${costTable(only(complete, ({ isVariant }) => !isVariant))}
## What each program does

${aboutPrograms(complete)}

The configurations are in \`bench/lost/programs/\` and \`bench/candidates/\`. We tried no other settings, such as
\`OIDCSessionCacheFallbackToCookie\` of mod_auth_openidc, or sticky sessions, except for the programs marked "sticky".

## How it was measured

- **The provider** is a stand-in. It responds after 20 to 400 ms. Halfway through this time, the refresh token counts as used. If the
  response is then lost, the old token is no longer valid.
- **The users** sign in over real redirects. Each has a cookie jar, loads a page, waits for 1 to 2 s, and loads the next one. Every request
  goes to a random process, unless sessions are sticky. If this process does not listen, the request goes to the other one. A stopped
  process still listens, and no health check removes it. A request is given up after 30 s.
- **Access tokens** live for ${REFRESH_SECONDS} s, or longer by the time by which the program refreshes early: for 4 s in oauth2-proxy,
  mod_auth_openidc and wonderwall, and 7 s in better-auth. The API accepts an access token for 1 s after its expiry, because the programs
  compute with whole seconds.
- **The faults** begin 2 to 6 s after the start, at a moment that the seed determines. For 5 s, the provider responds slowly, or responds
  with 503 or 429 without using up the refresh token. A process is killed (for Apache, with all its children) and started again after 1 s,
  or stopped with \`SIGSTOP\`, or both processes are restarted one after the other with \`SIGTERM\` (Apache: \`SIGWINCH\`). Redis is either
  stopped, or killed and started again after 1 s. It then starts empty, or with the data of an append-only file, which it wrote before each
  response. For 8 s, the browser cuts the connections of half of the pages that it loads, 0 to 400 ms after the page began to load.
- **Not measured**: a Redis that fails over to a replica, a network that loses packets, logging in and out, other programs such as Envoy,
  Pomerium, lua-resty-openidc or Auth.js, and the [speed of requests](scale.md#per-core-and-per-megabyte) with Redis. The authors of this
  server chose the faults.
- **The machine**: each run had its own network. A run was repeated if a timer of a simulated user was more than 200 ms late,
  or if it had less than 60 % of the requests of the same case with the other seed. The runs in which a process is killed, and those of
  programs without a lock with one request first (first seed), had the machine to themselves.

${machines(all)}
`
}

/** @param {import('./measure.js').LostRun[]} runs */
function narrow(runs) {
  return only(runs, ({ name }) => IN_NARROW_TABLES.includes(name))
}

/** Leaves programs out of the runs. @param {(program: import('./programs/common.js').Compared) => boolean} isWanted */
function only(runs, isWanted) {
  const wanted = programs.filter(isWanted).map(({ name }) => name)
  return runs.map(run => ({ ...run, programs: run.programs.filter(({ name }) => wanted.includes(name)) }))
}

/** A program without a lock loses most logins at their first refresh. */
function losesWithoutFault(runs, name) {
  return resultsOf(runs, name).some(({ outcomes, users }) =>
    ['one-process', 'two-processes'].some(which => (outcomes[which]?.signedOut ?? 0) > users / 2)
  )
}

/** The shortest and the longest time between two refreshes, in seconds. */
function refreshIntervals(runs) {
  const intervals = runs[0].programs.map(({ name }) => refreshInterval(runs, name))
  const known = intervals.filter(interval => interval !== undefined)
  return [Math.min(...known), Math.max(...known)].map(interval => interval.toFixed(1)).join(' to ')
}

/** A row for each configuration that the other tables do not have. */
function otherTable(all) {
  const { complete } = usualRuns(all)
  const others = complete[0].programs.filter(
    ({ name }) => losesWithoutFault(complete, name) || programs.find(one => one.name === name)?.isVariant
  )
  const kind = (key, value) => all.filter(run => run[key] === value)
  const columns = [
    ['one process', complete, 'one-process'],
    ['two processes', complete, 'two-processes'],
    ['one process, killed', complete, 'killed-alone'],
    ['the provider refuses', kind('reuse', 'refuses'), 'two-processes'],
    ['the provider allows', kind('reuse', 'allows'), 'two-processes'],
    ['one request first', kind('pages', 'one-first'), 'two-processes'],
    ['a document first', kind('pages', 'document-first'), 'two-processes']
  ]
  const rows = others.map(({ name, title }) => [
    title,
    ...columns.map(([, runs, which]) => [lossCell(runs, name, which), errorsOf(runs, name, which)].join(''))
  ])
  return table(['', ...columns.map(([title]) => title)], rows)
}

/** Says how many users got errors in a case in which no user was signed out. */
function errorsOf(runs, name, which) {
  const known = resultsOf(runs, name).flatMap(({ outcomes: { [which]: outcome } }) => outcome ?? [])
  const errors = Math.max(0, ...known.map(({ waited = 0 }) => waited))
  return errors > 0 && known.every(({ signedOut }) => signedOut === 0) ? `, errors: ${errors}` : ''
}

/** A paragraph for each program. Its configurations share it. */
function aboutPrograms([run]) {
  const paragraphs = programs.flatMap(({ name, title, about, extras, sources = [] }) => {
    if (about === undefined) return []
    const { version, missing } = run.programs.find(one => one.name === name) ?? { missing: 'it was not played' }
    const heading = `**${title.split(',')[0]}** ${version ?? `(not measured: ${missing})`}`
    const features = extras ? ` It has features that this server lacks: ${extras}.` : ''
    return `- ${heading} (${sources.map(link).join(', ')}). ${about}${features}`
  })
  return paragraphs.join('\n')
}

function link(source, index, { length }) {
  return `[documentation${length > 1 ? ` ${index + 1}` : ''}](${source})`
}

/** The runs with the usual provider and pages: those with all cases, and those that only added a kill. */
function usualRuns(all) {
  const usual = all.filter(isUsual)
  const isComplete = ({ programs }) => programs.some(({ outcomes }) => Object.keys(outcomes).length > 1)
  return { complete: usual.filter(isComplete), kills: usual.filter(run => !isComplete(run)) }
}

/** The picture and the tables show one kind of provider and of page. */
function isUsual({ reuse = REUSES[0], pages = PAGES[0] }) {
  return reuse === REUSES[0] && pages === PAGES[0]
}

/** The machines of the runs, with the seeds of each kind. */
function machines(all) {
  const kinds = new Map()
  for (const { seed, reuse = REUSES[0], pages = PAGES[0], date, machine } of all) {
    const { cpu, cores, memoryGibibytes, system, node, redis } = machine
    const where = `${date}, ${cores} cores, ${cpu}, ${memoryGibibytes} GiB, ${system}, Node ${node.slice(1)}, Redis ${redis}`
    const seeds = kinds.get(where) ?? new Map()
    seeds.set(`${reuse}, ${pages}`, [...(seeds.get(`${reuse}, ${pages}`) ?? []), seed])
    kinds.set(where, seeds)
  }
  const lines = [...kinds].map(([where, seeds]) => {
    const each = [...seeds].map(([kind, numbers]) => `${kind}: ${numbers.join(', ')}`)
    return `${where}. Seeds of each provider and page: ${each.join('; ')}.`
  })
  return `${lines.join('\n')} The longest delay of a timer was ${Math.max(...all.map(longestDelay))} ms.`
}

/** Shows whether the machine was overloaded: the benchmark's own timers were late by at most this time. */
function longestDelay({ programs }) {
  const delays = programs.flatMap(({ outcomes }) => Object.values(outcomes).map(({ delayMs = 0 }) => delayMs))
  return Math.max(...delays)
}
