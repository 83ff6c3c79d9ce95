// The Helm chart, without Helm: its text, its values, and the committed output of Helm for its sets of values.
// `npm run test:kubernetes` runs Helm itself and validates its output against the schemas of Kubernetes.

import { parseEnv } from 'node:util'
import { Ajv } from 'ajv'
import test from 'ava'
import { settingOf } from '#src/config/settings.js'
import { filesBelow, packageJson, readText, readYaml, textBelow } from '../helpers/repository.js'
import { words } from '../helpers/words.js'
import {
  chartFolder,
  type Deployment,
  exampleNames,
  fingerprintLine,
  type KubernetesObject,
  type NetworkPolicy,
  objectsIn,
  pathsOf,
  release,
  renderedFile,
  type Service,
  valuesFile
} from './chart.js'
import { acceptedValues, rejectedValues } from './chart-values.js'
import { settingsFrom } from './settings.js'

type Values = Readonly<Record<string, unknown>>

const [values] = readYaml(`${chartFolder}/values.yaml`) as [Values]
const schema = JSON.parse(readText(`${chartFolder}/values.schema.json`)) as {
  properties: Record<string, { properties?: object }>
}
const templates = textBelow(`${chartFolder}/templates`)

function rendered<T extends KubernetesObject>(example: string, kind: string): T[] {
  return objectsIn(readText(renderedFile(example))).filter(object => object.kind === kind) as T[]
}

function containerOf(example: string) {
  const [deployment] = rendered<Deployment>(example, 'Deployment')
  const container = deployment?.spec.template.spec.containers[0]
  if (!container) throw new Error(`${example} has no container`)
  return container
}

function settingsOf(t: Parameters<typeof settingsFrom>[0], example: string) {
  const given = containerOf(example).env.filter(({ value }) => value !== undefined)
  const variables = Object.fromEntries(given.map(({ name, value = '' }) => [name, value]))
  return settingsFrom(t, { ...variables, PLATFORM_CLIENT_ID: 'a-client' })
}

test('the chart has the version of the package and the default mode of the server', t => {
  const [chart] = readYaml(`${chartFolder}/Chart.yaml`) as [Values]
  const { version } = packageJson
  t.like(chart, { name: release.name, version, appVersion: version })
  t.is(values.mode, settingOf('mode').default)
})

const valuePaths = pathsOf(values).map(path => path.join('.'))
const usedPaths = [...templates.matchAll(/[.$][vV]alues\.([\w.]+)/g)].map(([, path = '']) => path)

function isIn(paths: readonly string[], path: string): boolean {
  return paths.some(one => one === path || one.startsWith(`${path}.`) || path.startsWith(`${one}.`))
}

test('every value that a template uses is in values.yaml', t => {
  t.true(usedPaths.length > 80)
  for (const path of usedPaths) t.true(isIn(valuePaths, path), path)
})

test('every value in values.yaml is changed by an example or by a test of the rendered chart', t => {
  const inExamples = exampleNames.flatMap(name => pathsOf(readYaml(valuesFile(name))[0]).map(path => path.join('.')))
  const sets = [...acceptedValues.map(({ values }) => values), ...rejectedValues.map(([set]) => set)]
  const inTests = sets.flatMap(set => set.split(',').map(one => one.replace(/[[=].*$/, '')))
  // The templates pass on these maps as a whole.
  const whole = /(?<=^(?:ingress\.annotations|securityContext|podSecurityContext|resources))\..*/
  for (const path of valuePaths.map(one => one.replace(whole, ''))) {
    t.true(isIn([...inExamples, ...inTests], path), path)
  }
})

test('the schema of the values accepts the defaults and the sets of values, and rejects unknown names', t => {
  const isValid = new Ajv({ allowUnionTypes: true }).compile(schema)
  for (const file of [`${chartFolder}/values.yaml`, ...exampleNames.map(valuesFile)]) {
    // Helm removes a value that is null.
    const [given] = readYaml(file)
    const withoutNull = JSON.parse(JSON.stringify(given, (_, value) => value ?? undefined)) as unknown
    t.true(isValid(withoutNull), `${file}: ${JSON.stringify(isValid.errors)}`)
  }
  // Helm passes on the condition of a parent chart, and the anchors of the values of an umbrella chart.
  const ofParent = { enabled: true, global: { team: 'a' }, 'x-shared': { a: 1 } }
  t.true(isValid({ ...JSON.parse(JSON.stringify(values, (_, value) => value ?? undefined)), ...ofParent }))
  for (const given of [{ replica: 2 }, { image: { name: 'x' } }, { networkPolicy: { egress: { to: [] } } }]) {
    t.false(isValid({ ...values, ...given }), JSON.stringify(given))
  }
})

test('the schema describes exactly the values in values.yaml', t => {
  const names = Object.keys(schema.properties).filter(name => !['global', 'enabled'].includes(name))
  t.deepEqual(names.sort(), Object.keys(values).sort())
  for (const [name, { properties }] of Object.entries(schema.properties)) {
    if (properties) t.deepEqual(Object.keys(properties).sort(), Object.keys(values[name] as object).sort(), name)
  }
})

test('every variable that the chart sets is reserved, and the message names a value of the chart', t => {
  const [, list = ''] = /define "platform-auth-server\.reservedVariables" -\}\}\n([\s\S]*)/.exec(templates) ?? []
  const set = [...templates.matchAll(/\{name: ([A-Z_]+), value:/g)].map(([, name = '']) => name)
  t.true(set.includes('PLATFORM_AUTH_FORWARD_AUTH_ADDRESS'))
  for (const name of set.map(one => one.replace(/_FILE$/, ''))) t.regex(list, new RegExp(`^${name}: |"${name}"`, 'm'))
  for (const [, value = ''] of list.matchAll(/^[A-Z_]+: ([\w.]+)/gm))
    if (value !== 'the') t.true(isIn(valuePaths, value))
})

test('the names of all templates begin with the name of the chart, because Helm has one name space for a chart and its parents', t => {
  const names = [...templates.matchAll(/(?:define|include) "([^"]+)"/g)].map(([, name = '']) => name)
  t.true(names.length > 40)
  t.deepEqual(
    names.filter(name => !name.startsWith(`${release.name}.`)),
    []
  )
})

test('Redis accepts connections from the pods of the chart, whose name can be overridden', t => {
  const [policy] = objectsIn(readText('deploy/kubernetes/redis.yaml')).filter(({ kind }) => kind === 'NetworkPolicy')
  const selected = JSON.parse(JSON.stringify(policy)).spec.ingress[0].from[0].podSelector.matchLabels
  const [deployment] = rendered<Deployment>('two-replicas', 'Deployment')
  t.like(deployment?.spec.template.metadata.labels, selected)
  for (const name of Object.keys(selected)) t.false(name in (deployment?.spec.selector.matchLabels ?? {}), name)
})

for (const example of exampleNames) {
  test(`the rendered file of ${example} is made from the current chart and values`, t => {
    const [line] = readText(renderedFile(example)).split('\n', 1)
    t.is(line, fingerprintLine(example), 'run npm run test:kubernetes -- --update, which needs Go')
  })

  test(`the server accepts the settings in ${example} without a warning, and its ports and shutdown are those of the pods`, async t => {
    const { config, warnings } = await settingsOf(t, example)
    t.deepEqual(warnings, [])
    const ports = Object.fromEntries(containerOf(example).ports.map(({ name, containerPort }) => [name, containerPort]))
    const forwardAuth = config.forwardAuth.address?.port
    t.deepEqual(ports, {
      http: config.port,
      metrics: config.metrics.address?.port as number,
      ...(forwardAuth !== undefined && { 'forward-auth': forwardAuth })
    })
    t.is(config.metrics.address?.host, undefined, 'Prometheus scrapes the metrics from outside of the pod')
    if (forwardAuth !== undefined) t.is(config.forwardAuth.address?.host, undefined)
    for (const { spec } of rendered<Service>(example, 'Service'))
      for (const { targetPort } of spec.ports) t.true(targetPort in ports, targetPort)
    const [policy] = rendered<NetworkPolicy>(example, 'NetworkPolicy')
    for (const { port } of policy?.spec.ingress.flatMap(rule => rule.ports) ?? []) t.true(port in ports, String(port))

    const { delaySeconds, graceSeconds } = config.shutdown
    t.true(delaySeconds >= 2, 'Kubernetes needs time to remove the endpoint')
    const [deployment] = rendered<Deployment>(example, 'Deployment')
    t.true(Number(deployment?.spec.template.spec.terminationGracePeriodSeconds) > delaySeconds + graceSeconds)
  })
}

test('a set of values with forward-auth opens its port only to the gateway, and only in a Service of its own', t => {
  const [main, own] = rendered<Service>('forward-auth', 'Service')
  const ports = [main, own].map(service => service?.spec.ports.map(({ name }) => name))
  t.deepEqual(ports, [['http', 'metrics'], ['forward-auth']])
  t.is(own?.metadata.name, `${release.name}-forward-auth`)
  const [policy] = rendered<NetworkPolicy>('forward-auth', 'NetworkPolicy')
  const [rule, ...others] = policy?.spec.ingress.filter(({ ports }) => ports[0]?.port === 'forward-auth') ?? []
  t.deepEqual(others, [])
  t.like(rule, {
    from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'traefik' } } }]
  })
})

test('a Service that clients outside of the cluster can reach has no port for metrics', t => {
  const [main, metrics] = rendered<Service>('load-balancer', 'Service')
  const ports = [main, metrics].map(service => service?.spec.ports.map(({ name }) => name))
  t.deepEqual(ports, [['http'], ['metrics']])
})

// The plain files leave these fields to Kubernetes, and need no account of their own, because they use no token.
const ofChart = ['imagePullPolicy', 'revisionHistoryLimit', 'serviceAccountName']

/** Removes the labels and fields that only the chart has. */
function comparable(object: KubernetesObject): unknown {
  const own = ['instance', 'version', 'managed-by'].map(name => `app.kubernetes.io/${name}`).concat('helm.sh/chart')
  const text = JSON.stringify(object, (key, value: unknown) => {
    if (own.includes(key) || ofChart.includes(key)) return undefined
    return value
  })
  const { metadata, ...rest } = JSON.parse(text) as { metadata: { labels?: object } }
  return { ...rest, metadata: { ...metadata, labels: undefined } }
}

test('the chart with the values two-replicas creates the objects of the plain files', t => {
  const plain = ['platform-auth-server', 'ingress'].flatMap(name =>
    objectsIn(readText(`deploy/kubernetes/${name}.yaml`))
  )
  t.is(plain.length, 5)
  for (const object of plain) {
    const [ofChart] = rendered('two-replicas', object.kind)
    if (!ofChart) t.fail(object.kind)
    else if (object.kind !== 'Deployment') t.deepEqual(comparable(ofChart), comparable(object), object.kind)
    else t.deepEqual(sorted(comparable(ofChart) as Deployment), sorted(comparable(withSettings(object)) as Deployment))
  }
})

/** Moves the settings of the operator from the ConfigMap that the plain files have to the variables, where the chart has them. */
function withSettings(object: KubernetesObject): Deployment {
  const settings = parseEnv(readText('deploy/kubernetes/server.env')) as Record<string, string>
  const given = { ...settings, PLATFORM_CLIENT_ID: 'the-client-id', PLATFORM_AUTH_MODE: 'single' }
  const copy = structuredClone(object) as Deployment
  const [container] = copy.spec.template.spec.containers
  const env = [...Object.entries(given).map(([name, value]) => ({ name, value })), ...container.env]
  Object.assign(container, { env, envFrom: undefined })
  return copy
}

// The order of the volumes and of the variables has no meaning.
function sorted({ spec }: Deployment) {
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)
  const { volumes, containers, ...pod } = spec.template.spec
  const [{ env, ...container }] = containers
  return { ...spec, template: pod, container, env: env.toSorted(byName), volumes: volumes.toSorted(byName) }
}

const recipes = filesBelow('deploy/kubernetes/recipes')

test('the recipes use the names and ports of the Services of the chart', t => {
  const services = Object.fromEntries(
    rendered<Service>('forward-auth', 'Service').map(({ metadata, spec }) => [metadata.name, spec.ports[0]?.port])
  )
  t.is(recipes.length, 3)
  for (const path of recipes) {
    const text = readText(path)
    const name = `${release.name}-forward-auth`
    const used = text.match(/platform-auth-server-forward-auth[^\n]*?4181/g) ?? []
    t.true(used.length > 0, path)
    t.is(services[name], 4181)
    t.true(text.includes(`name: ${release.name}, port: `), path)
    t.regex(text, /Authorization/)
  }
  t.is(services[release.name], 80)
})

test('the Traefik recipe has the rules, priorities and middlewares of the file for the file provider', t => {
  const recipe = readText('deploy/kubernetes/recipes/traefik-forward-auth.yaml')
  const file = readText('deploy/proxy/traefik-forward-auth-routes.yaml')
  const rules = [...file.matchAll(/rule: (.*)\n *priority: (\d+)/g)].map(([, rule, priority]) => [rule, priority])
  t.is(rules.length, 3)
  const matches = [...recipe.matchAll(/match: (.*)\n *priority: (\d+)/g)].map(([, rule, priority]) => [rule, priority])
  t.deepEqual(matches, rules)
  for (const line of [
    'authResponseHeaders: [Authorization]',
    'trustForwardHeader: false',
    'maxResponseBodySize: 1024'
  ]) {
    t.true(recipe.includes(line) && file.includes(line), line)
  }
})

test('the recipe for the Gateway API passes on the headers that decide if a request may use the session, and no method', t => {
  const [, list = ''] = /allowedHeaders:\n((?: +- [\w-]+\n)+)/.exec(readText(recipes[0] as string)) ?? []
  const headers = [...list.matchAll(/- ([\w-]+)/g)].map(([, name = '']) => name.toLowerCase())
  const source = ['every-request/request-origin', 'request/navigation']
    .map(name => readText(`src/web/${name}.ts`))
    .join('\n')
  for (const name of words`origin sec-fetch-site sec-fetch-mode sec-fetch-dest sec-purpose purpose x-moz upgrade
    sec-websocket-version`) {
    t.true(source.includes(name), `${name} is no longer used`)
    t.true(headers.includes(name), name)
  }
  t.true(headers.includes('cookie'))
  for (const name of ['x-original-method', 'x-forwarded-method']) t.false(headers.includes(name), name)
})
