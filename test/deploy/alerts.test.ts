// The alerts and the dashboard, as Prometheus reads them. test/docs/logs-and-traces.test.ts compares their metrics, labels and
// values with those of the server.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import test from 'ava'
import { readText, readYaml, repository } from '../helpers/repository.js'
import { testWhere } from '../helpers/requirement.js'
import { runCommand } from '../helpers/run-command.js'
import { tempFolder } from '../helpers/temp-folder.js'

const hasPromtool = spawnSync('promtool', ['--version']).status === 0
const withPromtool = testWhere(hasPromtool, 'promtool is not installed')

const folder = join(repository, 'deploy', 'monitoring')

async function promtool(...args: string[]) {
  const { status, stdout, stderr } = await runCommand(['promtool', ...args], { cwd: folder })
  return { status, output: `${stdout}${stderr}` }
}

withPromtool('promtool finds no fault in the alerts, and each fires in the situation that it is for', async t => {
  for (const args of [
    ['check', 'rules', 'alerts.yaml'],
    ['test', 'rules', 'alerts-test.yaml']
  ]) {
    const { status, output } = await promtool(...args)
    t.is(status, 0, output)
  }
})

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[]
}

withPromtool('promtool can parse every expression of the dashboard', async t => {
  const { panels } = JSON.parse(readText('deploy/monitoring/grafana-dashboard.json')) as Dashboard
  const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
  t.true(expressions.length > 10)
  // Grafana replaces the variables. JSON is YAML, too.
  const rules = expressions.map((expr, index) => ({
    record: `panel:${index}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$job', '.*')
  }))
  const file = { groups: [{ name: 'dashboard', rules }] }
  const rulesFolder = await tempFolder(t, { 'dashboard.json': JSON.stringify(file) })
  const { status, output } = await promtool('check', 'rules', join(rulesFolder, 'dashboard.json'))
  t.is(status, 0, output)
  t.regex(output, new RegExp(`${expressions.length} rules found`))
})

test('every alert fires in one of the tests of the alerts', t => {
  const [{ groups }] = readYaml('deploy/monitoring/alerts.yaml') as [{ groups: { rules: { alert: string }[] }[] }]
  const tests = readText('deploy/monitoring/alerts-test.yaml')
  const tested = [...tests.matchAll(/\balertname(?:="|: )(\w+)/g)].map(([, name]) => name)
  const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert))
  t.deepEqual([...new Set(tested)].toSorted(), alerts.toSorted())
})
