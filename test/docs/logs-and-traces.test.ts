import test from 'ava'
import { COUNTERS, GAUGES, HISTOGRAMS } from '#src/base/metrics.js'
import { createPrometheusMetrics } from '#src/base/prometheus.js'
import { codeSpans, tableRows } from '../helpers/markdown.js'
import { readText, readYaml, textBelow } from '../helpers/repository.js'

const rowsOf = <Rows extends object>(rows: Rows) => Object.entries(rows) as [keyof Rows, Rows[keyof Rows]][]

/** Scrapes all metrics after using each of them once, because a metric's labels appear only with its first use. */
async function scraped() {
  const metrics = createPrometheusMetrics('1.2.3')
  const values = (labels: readonly string[]) => Object.fromEntries(labels.map(label => [label, 'x']))
  for (const [name, [, labels]] of rowsOf(COUNTERS)) metrics.count(name, values(labels))
  for (const [name, [, labels]] of rowsOf(HISTOGRAMS)) metrics.observe(name, 1, values(labels))
  for (const [name, [, labels]] of rowsOf(GAUGES)) {
    if (name !== 'build_info') metrics.watch(name, () => 1, values(labels))
  }
  const text = await metrics.text()
  return [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type = '']) => ({
    name,
    type,
    labels: labelsOf(text, name)
  }))
}

function labelsOf(text: string, name: string): string[] {
  const samples = text.matchAll(new RegExp(`^${name}(?:_bucket)?\\{(.*)\\} `, 'gm'))
  const labels = [...samples].flatMap(([, list = '']) => [...list.matchAll(/(\w+)="/g)].map(([, label = '']) => label))
  return [...new Set(labels)].filter(label => label !== 'le')
}

test('docs/reference/logs-and-traces.md lists every metric of the server with its labels, and no other metric', async t => {
  const byName = (a: { readonly name: string }, b: { readonly name: string }) => a.name.localeCompare(b.name)
  const own = (await scraped())
    .filter(({ name }) => name.startsWith('platform_auth_'))
    .map(({ name, type, labels }) => ({ name, isHistogram: type === 'histogram', labels: labels.toSorted() }))
  const documented = tableRows(readText('docs/reference/logs-and-traces.md'))
    .filter(([name]) => name?.startsWith('`platform_auth_'))
    .map(([name = '', labels = '']) => ({
      name: codeSpans(name).join(),
      isHistogram: name.includes('histogram'),
      labels: codeSpans(labels.split(':', 1).join('')).sort()
    }))
  t.deepEqual(documented.sort(byName), own.sort(byName))
})

interface Expression {
  readonly where: string
  readonly text: string
}

function alerts(): Expression[] {
  const [file] = readYaml('deploy/monitoring/alerts.yaml') as [
    { groups: { rules: { alert: string; expr: string }[] }[] }
  ]
  return file.groups.flatMap(({ rules }) =>
    rules.map(({ alert, expr }) => ({ where: `the alert ${alert}`, text: expr }))
  )
}

function panels(): Expression[] {
  const dashboard = JSON.parse(readText('deploy/monitoring/grafana-dashboard.json')) as {
    templating: { list: { name: string; query: string }[] }
    panels: { title: string; targets?: { expr: string }[] }[]
  }
  const variables = dashboard.templating.list
    .filter(({ query }) => query.startsWith('label_values('))
    .map(({ name, query }) => ({ where: `the dashboard's variable ${name}`, text: query }))
  const targets = dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }, index) => ({ where: `the panel ${title}, line ${index + 1},`, text: expr }))
  )
  return [...variables, ...targets]
}

const sources = textBelow('src')

// Metrics of redis_exporter, which the alerts about Redis require in addition to those of the server.
const ofRedisExporter = ['redis_memory_used_bytes', 'redis_memory_max_bytes', 'redis_evicted_keys_total']

// Labels that Prometheus itself adds.
const ofPrometheus = ['job', 'instance', 'le']

for (const { where, text } of [...alerts(), ...panels()]) {
  test(`${where} uses only metrics, labels and values that exist`, async t => {
    const metrics = await scraped()
    const named = [...text.matchAll(/\b((?:platform_auth|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)]
    const ofRedis = [...text.matchAll(/\bredis_\w+/g)].map(([name]) => name)
    for (const name of ofRedis) t.true(ofRedisExporter.includes(name), `redis_exporter has no ${name}`)
    t.true(named.length + ofRedis.length > 0)
    for (const [, name = '', selector = ''] of named) {
      const metric = metrics.find(one =>
        one.type === 'histogram'
          ? ['_bucket', '_sum', '_count'].some(end => one.name + end === name)
          : one.name === name
      )
      t.truthy(metric, `there is no ${name}`)
      const selected = [...selector.matchAll(/(\w+)(?:=|!)/g)].map(([, label = '']) => label)
      for (const label of selected) t.true([...(metric?.labels ?? []), ...ofPrometheus].includes(label), label)
    }
    for (const [, label = '', value = ''] of text.matchAll(/(\w+)=~?"([^"$]*)"/g)) {
      for (const one of ofPrometheus.includes(label) ? [] : value.split('|'))
        t.true(/^\d{3}$/.test(one) || sources.includes(`'${one}'`), `nothing is ${one}`)
    }
    const known = new Set([...metrics.flatMap(({ labels }) => labels), ...ofPrometheus])
    const grouped = [...text.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/, */))
    for (const label of grouped) t.true(known.has(label), label)
  })
}

test('every panel of the dashboard filters by the selected job', t => {
  for (const { where, text } of panels().filter(({ where }) => where.startsWith('the panel'))) {
    const selectors = [...text.matchAll(/\b(?:platform_auth|process|nodejs)_\w+(\{[^}]*\})?/g)]
    for (const [, selector = ''] of selectors) t.regex(selector, /job=~"\$job"/, where)
  }
})

// Operators search the log by event name, so docs/reference/logs-and-traces.md lists exactly the events that exist.

const written = new Set([...sources.matchAll(/\b(?:event: |reportOnce\()'(\w+)'/g)].map(([, name = '']) => name))

test('docs/reference/logs-and-traces.md lists every event that the server logs and no other', t => {
  const [logs = ''] = readText('docs/reference/logs-and-traces.md').split('\n## Metrics', 1)
  // An item names one or more events, each with its level: "- `revoked` (info), `revocation_failed` (warn): …".
  const items = logs.matchAll(/^- (`\w+` \((?:fatal|error|warn|info|debug)\b[^:]*):/gm)
  const events = [...items].flatMap(([, names = '']) => codeSpans(names))
  t.deepEqual(events.sort(), [...written].sort())
})
