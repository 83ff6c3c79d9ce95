// The release workflow and the script that writes the release notes. `npm run test:workflows` checks the workflows with actionlint.
import test, { type ExecutionContext } from 'ava'
import { filesBelow, packageJson, readText, readYaml, repository } from '../helpers/repository.js'
import { runCommand } from '../helpers/run-command.js'
import { tempFolder } from '../helpers/temp-folder.js'

interface Step {
  readonly run?: string
}

interface Job {
  readonly needs?: string | readonly string[]
  readonly permissions?: Readonly<Record<string, string>>
  readonly strategy?: { readonly matrix: { readonly node: readonly number[] } }
  readonly steps: readonly Step[]
}

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, Job>>
}

const path = '.github/workflows/release.yaml'
const [workflow] = readYaml(path) as [Workflow]
const { jobs } = workflow

test('a release is tested on the Node versions of test:nodes before anything is published', t => {
  const [, list = ''] = /\['(\d+(?:', '\d+)*)'\]/.exec(readText('scripts/test-nodes.js')) ?? []
  t.deepEqual(jobs.test?.strategy?.matrix.node, list.split("', '").map(Number))
  const isAfter = (name: string, other: string): boolean =>
    [jobs[name]?.needs ?? []].flat().some(one => one === other || isAfter(one, other))
  for (const name of ['npm', 'image', 'chart', 'notes']) {
    for (const tests of ['test', 'deployment']) t.true(isAfter(name, tests), `${name} runs after ${tests}`)
  }
})

test('only the jobs that publish have permissions, and no workflow uses a stored secret', t => {
  t.deepEqual(workflow.permissions, { contents: 'read' })
  const permissions = Object.entries(jobs).flatMap(([name, job]) => (job.permissions ? [[name, job.permissions]] : []))
  t.deepEqual(Object.fromEntries(permissions), {
    npm: { 'id-token': 'write' },
    image: { packages: 'write', 'id-token': 'write', attestations: 'write' },
    chart: { packages: 'write' },
    notes: { contents: 'write' }
  })
  for (const file of filesBelow('.github/workflows')) t.notRegex(readText(file), /\$\{\{[^}]*\bsecrets\b/, file)
})

test('every npm script and value that the workflow uses exists', t => {
  const commands = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run = [] }) => run))
  for (const [, name = ''] of commands.join('\n').matchAll(/npm run ([\w:]+)/g))
    t.true(name in packageJson.scripts, name)
  // The workflow replaces this line by the address of the image.
  t.is(readText('deploy/helm/values.yaml').match(/^ {2}repository: platform-auth-server$/gm)?.length, 1)
})

async function notesOf(t: ExecutionContext, changelog: string, { tag = 'v1.2.0', version = '1.2.0', env = {} } = {}) {
  const cwd = await tempFolder(t, { 'CHANGELOG.md': changelog, 'package.json': JSON.stringify({ version }) })
  const { GITHUB_REPOSITORY: _, ...others } = process.env
  const script = `${repository}scripts/release-notes.js`
  return runCommand([process.execPath, script, tag], { cwd, env: { ...others, ...env } })
}

const changelog = readText('test/deploy/release-notes/CHANGELOG.md')

test('the release notes are the section of the version, with one line for each paragraph and list item', async t => {
  const { status, stdout, stderr } = await notesOf(t, changelog)
  t.deepEqual([status, stderr], [0, ''])
  t.is(stdout, readText('test/deploy/release-notes/1.2.0.md'))
})

test('links to files lead to the tag in the repository', async t => {
  const env = { GITHUB_SERVER_URL: 'https://git.example.com', GITHUB_REPOSITORY: 'someone/platform-auth-server' }
  const { stdout } = await notesOf(t, changelog, { env })
  const address = 'https://git.example.com/someone/platform-auth-server/blob/v1.2.0/docs/operations.md#start'
  t.true(stdout.includes(`[the docs](${address})`))
  t.true(stdout.includes('[a site](https://example.com/)'))
})

test('a release stops if the tag, package.json and CHANGELOG.md do not have the same version', async t => {
  for (const [text, options, message] of [
    [changelog, { tag: 'v1.3.0' }, /tag is v1\.3\.0, but package\.json has the version 1\.2\.0/],
    [changelog, { tag: '' }, /tag is missing/],
    [changelog.replace('## 1.2.0', '## Unreleased'), {}, /first section of CHANGELOG\.md is "Unreleased"/],
    ['# Changelog\n\n## 1.2.0\n\n## 1.1.0\n\n- Older.\n', {}, /section 1\.2\.0 of CHANGELOG\.md is empty/]
  ] as const) {
    const { status, stdout, stderr } = await notesOf(t, text, options)
    t.deepEqual([status, stdout], [1, ''])
    t.regex(stderr, message)
  }
})

test('the actions of the workflows are pinned to a commit, because a tag can be moved', t => {
  const uses = ['ci', 'release'].flatMap(name => readText(`.github/workflows/${name}.yaml`).match(/uses: .*/g) ?? [])
  t.true(uses.length > 10)
  for (const line of uses) t.regex(line, /^uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
})
