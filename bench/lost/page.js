/** Writes docs/comparison.md and docs/comparison.svg from the saved results: `node bench/lost/page.js`. */
import { writeFile } from 'node:fs/promises'
import { argv } from 'node:process'
import { fileURLToPath } from 'node:url'
import { REUSES } from './logins.js'
import { picture } from './picture.js'
import { REFRESH_SECONDS } from './programs/common.js'
import { programs } from './programs/index.js'
import { readRuns } from './results.js'
import {
  BETWEEN_REFRESHES_SECONDS,
  costTable,
  failureTable,
  hourTable,
  joined,
  kindTable,
  latencyTable,
  lossTable,
  resultsOf,
  waitTable
} from './tables.js'
import { PAGES } from './user.js'

const PAGE = new URL('../../docs/comparison.md', import.meta.url)
const PICTURE = new URL('../../docs/comparison.svg', import.meta.url)

if (argv[1] === fileURLToPath(import.meta.url)) await writePage()

export async function writePage() {
  const runs = (await readRuns()).map(withoutWarnings)
  const { complete, kills } = usualRuns(runs)
  await writeFile(PICTURE, picture(complete, kills))
  await writeFile(PAGE, page(await readRuns()))
}

/** @param {import('./measure.js').LostRun[]} all */
export function page(all) {
  const { complete: runs, kills } = usualRuns(all.map(withoutWarnings))
  const [{ users, programs: ran }] = runs
  const compared = programs.filter(({ name }) => ran.some(one => one.name === name))
  const kindsOf = (name, values) =>
    values.map(value => (value === values[0] ? runs : all.filter(run => run[name] === value)))
  return `# Who stays signed in

<!-- \`node bench/lost/page.js\` generates this file from bench/results/. Change bench/lost/page.js instead. -->

How many users lose their login in this server and in its alternatives, with the same provider, users and faults. These commands repeat a run
in a checkout (see \`bench/README.md\`):

\`\`\`sh
npm run build && npm run bench -- --only lost --users ${users} --seed ${runs[0].seed}
\`\`\`

![Bars with one row for each program and one column for each fault. The first table below has the same numbers](comparison.svg)

The picture shows the strictest provider, the tokens with the shortest lifetime, and the most demanding pages. **All three decide the result**:

- **The provider ends the whole login at a second use of a refresh token**, because it assumes that the token was stolen
  ([RFC 9700](https://www.rfc-editor.org/rfc/rfc9700.html#section-4.14.2)). [Other providers](#other-providers-and-pages) only refuse the second
  use, or allow it for some time. The behaviour of APS is not documented: we have no evidence that it ends a login, and two refreshes within
  50 ms may both succeed.
- **Access tokens are refreshed after about ${REFRESH_SECONDS} s**, so by every user during each fault. With [tokens that last an hour](#tokens-of-an-hour),
  few users refresh during a fault.
- **A page sends six requests in parallel**, and never a document or a single request first. So six requests find the token expired.

## Users who were signed out

Of ${users} users, in ${runs.length} runs with different seeds. If the runs differ, the cell has the value of each run. The rows about the kill have the median and the
range of ${runs.length + kills.length} runs, and those of the programs without a lock the values of two. Two processes share a Redis unless the row or the program says otherwise.

${lossTable(runs, kills)}
${absences(ran)}
${warnings(all.filter(isUsual))}- **Signed out**: after the fault, the program refuses three requests in a row, and either the provider has ended the login or the program has
  deleted its cookies. All other users get 10 s more, or 75 s if the responses are errors, because some programs recover. "2 waited" are users
  who still got errors then. Users who stay signed in may still have to [wait](#failures-and-waits).
- **Process killed**, the means of ${runs.length + kills.length} runs: ${killMeans([...runs, ...kills], compared)}. The ranges overlap.

## Other providers and pages

The first number in each cell is for the provider of the picture, which ends the login. The second provider only **refuses** the second use of
a refresh token, and the third one **allows** it for 30 s, as [Amazon Cognito](https://docs.aws.amazon.com/cognito-user-identity-pools/latest/APIReference/API_RefreshTokenRotationType.html)
can. A dash was not measured.

${kindTable(kindsOf('reuse', REUSES))}
The kinds of page, with the provider that ends the login: six requests in parallel / **one request first**, and then five in parallel / **a
document first**, and then six in parallel, as a framework loads a page.

${kindTable(kindsOf('pages', PAGES))}
## Tokens of an hour

*Computed*: one fault signs out this many of 10,000 users, by the formula \`10,000 × signed out / ${users} × max(length of the fault,
${BETWEEN_REFRESHES_SECONDS} s) / 3,600 s\`, because every user of the comparison refreshes once in ${BETWEEN_REFRESHES_SECONDS} s, and only a refresh that meets the fault can be lost.
If Redis fails, the lifetime makes no difference for the users whose refresh token was not sent twice. Programs without a lock are left out,
because they lose every login when its first access token expires.

${hourTable(runs, kills)}
## Failures and waits

The share of the requests that did not get 200 until everyone's outcome was known, except those that the browser cut. These three tables have
the higher value of the runs, and no programs without a lock.

${failureTable(runs)}
The users who stayed signed in, but got at least one response without data, and the longest time until such a user got data again:

${waitTable(runs)}
The time in which 99 % of the responses arrived, and that of the slowest one:

${latencyTable(runs)}
## What each program needs

With two processes, and with a Redis if the program can use it, whose memory and CPU time do not count. The lowest values are bold.

${costTable(runs)}${extrasRow(compared)}

- **Memory** is the proportional set size of both processes. **CPU time** is missing if fewer than 90 % of the requests were served, because a
  refusal costs less.
- **Cookie**: access tokens are 1,000 bytes long, like those of real providers. Redis keeps about [3.6 kB](scale.md) for each session of this server,
  also if the session is in cookies.

## What each program does

| program | version | session | by design | documentation |
|---|---|---|---|---|
${compared.map(program => designRow(program, ran)).join('\n')}

The configurations are in \`bench/lost/programs/\` and \`bench/candidates/\`.

## Why logins were lost

${compared.flatMap(({ title, reasons = [] }) => reasons.map(reason => `- **${title}**: ${reason}`)).join('\n')}

## How it was measured

- **The provider** is a stand-in. It responds after 20 to 400 ms. Halfway through this time, the refresh token becomes used. If the response is
  then lost, the old token is no longer valid.
- **The users** sign in over real redirects. Each has a cookie jar, loads a page, waits for 1 to 2 s, and loads the next one. Every request goes
  to a random process, unless sessions are sticky, and to the other one if nothing listens there.
- **The lifetime of access tokens** is ${REFRESH_SECONDS} s, or longer by the time by which the program refreshes early. The API accepts an access
  token for 1 s after its expiry, because the programs compute with whole seconds.
- **The faults** begin 2 to 6 s after the start, at a moment that the seed determines. For 5 s, the provider's responses take 3 s or 12 s longer. A
  process is killed and started again after 1 s, or stopped. Redis is killed and starts again after 1 s, empty or with an append-only file that
  it writes before each response. For 8 s, the browser cuts the connections of half of its pages after 0 to 400 ms.
- **The machine** was busy with two to six runs at a time, so responses are slower than on an idle one. Each run had its own network. A play in
  which a timer of the users was more than 200 ms late was repeated. The cases with two processes and no fault ran one after the other.
- **Not compared**: other faults, such as a network that loses packets, other programs, logging in and out, and the
  [speed of requests](scale.md#per-core-and-per-megabyte).

| seed | provider, pages | date | machine | memory | system | Node | Redis | longest delay of a timer |
|--:|---|---|---|--:|---|---|---|--:|
${all.map(machineRow).join('\n')}
`
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

/**
 * Leaves out the configurations that a program's documentation advises against. A table with them would be unfair, so the page
 * names them below it.
 */
function withoutWarnings(run) {
  const advisedAgainst = programs.filter(({ onlyCase }) => onlyCase).map(({ name }) => name)
  return { ...run, programs: run.programs.filter(({ name }) => !advisedAgainst.includes(name)) }
}

/** A line for each configuration that is left out. */
function warnings(all) {
  const lines = programs.flatMap(({ name, title, onlyCase, whyOnly, reasons = [] }) => {
    const known = all.flatMap(run => run.programs.find(one => one.name === name)?.outcomes[onlyCase]?.signedOut ?? [])
    return known.length === 0
      ? []
      : [`- **${title}**, left out because ${whyOnly}: ${joined(known)} signed out. ${reasons.join(' ')}\n`]
  })
  return lines.join('')
}

function designRow({ title, name, store, design, sources }, ran) {
  const { version, missing } = ran.find(one => one.name === name)
  const links = sources.map((source, index) => link(source, sources.length > 1 ? index + 1 : ''))
  return `| ${title} | ${version ?? `not measured: ${missing}`} | ${store} | ${design} | ${links.join(', ')} |`
}

/** The last row of the first table. Its cells are too long for the alignment of the others. */
function extrasRow(compared) {
  const cells = compared.map(({ extras }, index) => (extras === compared[index - 1]?.extras ? 'the same' : extras))
  return `| does what this server does not | ${cells.join(' | ')} |`
}

/** The mean number of lost logins at a kill, of each program that has played it in every run. */
function killMeans(runs, compared) {
  return compared
    .flatMap(({ name, title }) => {
      const lost = resultsOf(runs, name).flatMap(({ outcomes }) => outcomes.killed?.signedOut ?? [])
      const mean = lost.reduce((sum, signedOut) => sum + signedOut, 0) / lost.length
      return lost.length === runs.length ? [`${title} ${mean.toFixed(1)}`] : []
    })
    .join('; ')
}

/** Explains the cells without a number. */
function absences(ran) {
  /** The programs to which each text applies. */
  const titles = new Map()
  for (const { title, missing, outcomes } of ran) {
    const all = missing ? [{ missing }] : Object.values(outcomes)
    for (const { missing, impossible, leftOut, error } of all) {
      if (missing) note(`not measured: ${missing}`, title)
      if (impossible) note(`not possible: ${impossible}`, title)
      if (leftOut) note(`left out: ${leftOut}`, title)
      if (error) note(`no result: ${error}`, title)
    }
  }
  return [...titles].map(([text, names]) => `- **${[...names].join('; ')}**, ${text}.`).join('\n')

  function note(text, title) {
    titles.set(text, (titles.get(text) ?? new Set()).add(title))
  }
}

function link(source, number) {
  return source.startsWith('https:') ? `[page${number && ` ${number}`}](${source})` : `[${source}](${source})`
}

function machineRow({ seed, reuse, pages, date, machine, programs }) {
  const { cpu, cores, memoryGibibytes, system, node, redis } = machine
  const kinds = [reuse ?? REUSES[0], pages ?? PAGES[0]].join(', ')
  return `| ${seed} | ${kinds} | ${date} | ${cores} cores, ${cpu} | ${memoryGibibytes} GiB | ${system} | ${node} | ${redis} | ${longestDelay(programs)} ms |`
}

/** Shows whether the machine was overloaded: the benchmark's own timers were late by at most this time. */
function longestDelay(programs) {
  const delays = programs.flatMap(({ outcomes }) => Object.values(outcomes).map(({ delayMs = 0 }) => delayMs))
  return Math.max(...delays)
}
