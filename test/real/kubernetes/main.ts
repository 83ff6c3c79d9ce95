// Renders the Helm chart and the plain files with real tools, and validates all objects against the schemas of current Kubernetes
// versions. `--help` lists the options.
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual, parseEnv } from 'node:util'
import {
  chartFolder,
  exampleNames,
  objectsIn,
  pathsOf,
  release,
  renderedFile,
  renderedText,
  valuesFile
} from '../../deploy/chart.js'
import { acceptedValues, rejectedValues } from '../../deploy/chart-values.js'
import { ofHelm, serverEnvOf, walk } from '../../deploy/matrix.js'
import { modes } from '../../helpers/modes.js'
import { copiedLines, guides } from '../../helpers/provider-guides.js'
import { startRedis } from '../../helpers/redis-server.js'
import { filesBelow, readText, readYaml, repository } from '../../helpers/repository.js'
import type { Teardown } from '../../helpers/scope.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { isInstalled } from '../programs.js'
import { type Report, runSuite } from '../suite.js'
import { schemaLocation, writeCustomSchemas, writeKubernetesSchemas } from './schemas.js'
import { goModule, goProgram, type Outcome, run } from './tools.js'

/** The newest patch versions in the Go module proxy of the versions that Kubernetes supports. */
const kubernetesVersions = ['1.35.4', '1.36.3', '1.37.2']
const [newest] = kubernetesVersions.slice(-1) as [string]

const builtHelm = () => goProgram('helm', 'helm.sh/helm/v3/cmd/helm', 'v3.22.0')
const ofRelease = ['template', release.name, chartFolder, '-n', release.namespace]

/** Modules with resource definitions, and the folder of these in each module. */
const definitions = [
  ['github.com/prometheus-operator/prometheus-operator', 'v0.85.0', 'example/prometheus-operator-crd'],
  // The filter ExternalAuth is in the experimental channel.
  ['sigs.k8s.io/gateway-api', 'v1.6.3', 'config/crd/experimental'],
  ['github.com/traefik/traefik/v3', 'v3.7.13', 'docs/content/reference/dynamic-configuration']
] as const

await runSuite({
  script: 'test:kubernetes',
  options: {
    update: {
      usual: false,
      help: 'writes the rendered sets of values to test/deploy/rendered/, which the other tests use'
    }
  },
  remark: `Renders ${chartFolder} for each set of values in its examples/, builds the kustomization, and validates these objects, the plain
files and the recipes for Kubernetes ${kubernetesVersions.join(', ')}. Signs in with the chart and the settings of each provider's page. Needs Go and the Go module proxy. Helm, kubeconform and Kustomize are
built once, into .cache/kubernetes (or PLATFORM_AUTH_KUBERNETES_CACHE).`,
  plays: (_, { update }) => [
    async (report, scope) => {
      report.title('Kubernetes')
      if (isInstalled('go')) {
        checkAll(report, await tempFolder(scope), update)
        await walkGuides(report, scope)
      } else report.note('SKIPPED, because go is not installed.')
      if (!isInstalled('go') && process.env.CI === 'true') report.check('go is installed', false)
    }
  ]
})

/** The column of the chart in the matrix of test/deploy/matrix.test.ts. */
async function walkGuides(report: Report, scope: Teardown): Promise<void> {
  const { url } = await startRedis(scope)
  const helm = builtHelm()
  const chart = ofHelm(args => succeed(run(helm, [...ofRelease, '--kube-version', newest, ...args])).stdout)
  for (const name of Object.keys(guides)) {
    for (const mode of modes) {
      const cell = await walk(name, mode, chart, url)
      report.check(`${name} with the chart, ${mode}: ${cell}`, cell === 'works' || cell === 'single only')
    }
  }
}

function checkAll(report: Report, folder: string, updates: boolean): void {
  function check(title: string, body: () => number | undefined): void {
    try {
      const objects = body()
      report.check(objects === undefined ? title : `${title} (${objects} objects)`, true)
    } catch (error) {
      report.check(title, false, (error as Error).message)
    }
  }

  const helm = builtHelm()
  const kubeconform = goProgram('kubeconform', 'github.com/yannh/kubeconform/cmd/kubeconform', 'v0.8.0')
  const kustomize = goProgram('kustomize', 'sigs.k8s.io/kustomize/kustomize/v5', 'v5.8.2')
  for (const version of kubernetesVersions) {
    const description = join(goModule('k8s.io/kubernetes', `v${version}`), 'api/openapi-spec/swagger.json')
    writeKubernetesSchemas(description, join(folder, version))
  }
  for (const [path, version, inside] of definitions)
    writeCustomSchemas(join(goModule(path, version), inside), join(folder, 'custom'))

  const template = (file: string, version: string, ...more: string[]) =>
    run(helm, [...ofRelease, '--kube-version', version, '-f', file, ...more])

  /** Returns the number of valid objects. Throws with kubeconform's findings. */
  function validate(text: string, version: string): number {
    const file = join(folder, 'objects.yaml')
    writeFileSync(file, text)
    const locations = [version, 'custom'].flatMap(name => ['-schema-location', schemaLocation(join(folder, name))])
    const outcome = succeed(run(kubeconform, ['-strict', '-summary', '-output', 'json', ...locations, file]))
    const { summary } = JSON.parse(outcome.stdout) as { summary: { valid: number; skipped: number } }
    const count = objectsIn(text).length
    if (summary.valid !== count || count === 0) throw new Error(`${summary.valid} of ${count} objects were validated`)
    return count
  }

  for (const example of exampleNames) {
    check(
      `helm lint accepts the values ${example}`,
      () => void succeed(run(helm, ['lint', '--strict', chartFolder, '-f', valuesFile(example)]))
    )
    for (const version of kubernetesVersions) {
      check(`helm template | kubeconform: ${example}, Kubernetes ${version}`, () => {
        const { stdout } = succeed(template(valuesFile(example), version))
        const text = renderedText(example, stdout)
        const file = renderedFile(example)
        if (updates) writeFileSync(join(repository, file), text)
        if (text !== readText(file)) throw new Error(`${file} is outdated. Run npm run test:kubernetes -- --update.`)
        return validate(stdout, version)
      })
    }
  }
  for (const [values, message] of rejectedValues) {
    check(`the chart rejects ${values}`, () => {
      const { status, stderr } = template(valuesFile('two-replicas'), newest, '--set', values)
      if (status === 0 || !stderr.includes(message)) throw new Error(`status ${status}: ${stderr}`)
    })
  }
  for (const { values, pattern, isThere } of acceptedValues) {
    check(`the chart accepts ${values}`, () => {
      const { stdout } = succeed(template(valuesFile('two-replicas'), newest, '--set', values))
      if (pattern.test(stdout) !== isThere) throw new Error(`the output has ${isThere ? 'not ' : ''}${pattern}`)
      return validate(stdout, newest)
    })
  }
  check('the templates and the values of a parent chart do not change those of the chart', () => {
    const { stdout } = succeed(run(helm, ['template', release.name, writeParentChart(join(folder, 'parent'))]))
    if (/image: "(?!platform-auth-server:)/.test(stdout)) throw new Error('the image is that of the parent')
    return validate(stdout, newest)
  })
  for (const example of exampleNames) {
    const file = valuesFile(example)
    const { stdout: whole } = succeed(template(file, newest))
    const [values] = readYaml(file)
    for (const path of pathsOf(values)) {
      check(`${path.join('.')} in ${example} has an effect`, () => {
        const changed = join(folder, 'values.json')
        writeFileSync(changed, JSON.stringify(without(values, path)))
        const { status, stdout } = template(changed, newest)
        if (status === 0 && stdout === whole) throw new Error('the output is the same without it')
      })
    }
  }
  const plain = filesBelow('deploy/kubernetes').filter(path => /(?<!\/kustomization)\.yaml$/.test(path))
  for (const version of kubernetesVersions) {
    for (const path of plain)
      check(`kubeconform: ${path}, Kubernetes ${version}`, () => validate(readText(path), version))
    check(`kustomize build | kubeconform: deploy/kubernetes, Kubernetes ${version}`, () =>
      validate(succeed(run(kustomize, ['build', 'deploy/kubernetes'])).stdout, version)
    )
  }
  check('kustomize reads server.env as the other deployments read it', () => {
    const copy = join(folder, 'kustomization')
    cpSync(join(repository, 'deploy/kubernetes'), copy, { recursive: true })
    const text = serverEnvOf(copiedLines('google'))
    writeFileSync(join(copy, 'server.env'), text)
    const objects = objectsIn(succeed(run(kustomize, ['build', copy])).stdout)
    const map = objects.find(({ kind }) => kind === 'ConfigMap') as { readonly data?: object } | undefined
    if (!isDeepStrictEqual(map?.data, { ...parseEnv(text) })) throw new Error(JSON.stringify(map?.data))
    return undefined
  })
  // If the schemas accepted everything, all of the checks above would pass.
  for (const path of plain) {
    for (const [what, pattern, replacement] of [
      ['an unknown field', /^spec:$/m, 'spec:\n  misspelt: 1'],
      ['a wrong type', /^ {2}name: .*$/m, '  name: [1]']
    ] as const) {
      check(`kubeconform finds ${what} in ${path}`, () => {
        const changed = readText(path).replace(pattern, replacement)
        if (changed === readText(path)) throw new Error('the file was not changed')
        try {
          validate(changed, newest)
        } catch {
          return
        }
        throw new Error('no error was found')
      })
    }
  }
}

/** Writes a chart that contains ours, as companies do: with a condition, YAML anchors, and templates with the usual short names. */
function writeParentChart(folder: string): string {
  cpSync(join(repository, chartFolder), join(folder, 'charts', release.name), { recursive: true })
  mkdirSync(join(folder, 'templates'))
  const [{ version }] = readYaml(`${chartFolder}/Chart.yaml`) as [{ version: string }]
  const dependency = `{name: ${release.name}, version: ${version}, condition: ${release.name}.enabled}`
  const names = ['name', 'image', 'labels', 'host', 'validate']
  for (const [path, text] of [
    ['Chart.yaml', `apiVersion: v2\nname: parent\nversion: 1.0.0\ndependencies: [${dependency}]\n`],
    ['templates/_helpers.tpl', names.map(name => `{{- define "${name}" -}}of the parent{{- end -}}\n`).join('')],
    [
      'values.yaml',
      JSON.stringify({
        [release.name]: { enabled: true, 'x-shared': {}, ...(readYaml(valuesFile('two-replicas'))[0] as object) }
      })
    ]
  ] as const) {
    writeFileSync(join(folder, path), text)
  }
  return folder
}

function without(value: unknown, [key = '', ...rest]: readonly string[]): unknown {
  const { [key]: inner, ...others } = value as Record<string, unknown>
  return rest.length === 0 ? others : { ...others, [key]: without(inner, rest) }
}

function succeed(outcome: Outcome): Outcome {
  if (outcome.status !== 0) throw new Error(`exit code ${outcome.status}: ${outcome.stdout}${outcome.stderr}`)
  return outcome
}
