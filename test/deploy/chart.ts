// The Helm chart, its sets of values, and what Helm made of each of them. `npm run test:kubernetes` compares the rendered
// files with the output of Helm. Therefore the other tests can use these files without Helm.
import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { defaultLoaders } from 'cosmiconfig'
import { filesBelow, readText } from '../helpers/repository.js'

export const chartFolder = 'deploy/helm'

/** The release and the namespace that all sets of values are rendered for. */
export const release = { name: 'platform-auth-server', namespace: 'default' } as const

/** The names of the sets of values in examples/. */
export const exampleNames = filesBelow(`${chartFolder}/examples`).map(path => basename(path, '.yaml'))

export function valuesFile(example: string): string {
  return `${chartFolder}/examples/${example}.yaml`
}

export function renderedFile(example: string): string {
  return `test/deploy/rendered/${example}.yaml`
}

/**
 * The rendered text that is kept: the output of Helm after a line with the fingerprint of the chart. The alerts are left out,
 * because another test compares the chart's copy of them with the original.
 */
export function renderedText(example: string, output: string): string {
  const withoutAlerts = output.replace(/^(kind: PrometheusRule\n(?:.*\n)*?)spec:\n(?: .*\n)+/gm, '$1')
  return `${fingerprintLine(example)}\n${withoutAlerts}`
}

/** Changes with each file from which Helm renders the set of values, except for the alerts. */
export function fingerprintLine(example: string): string {
  const hash = createHash('sha256')
  for (const path of [...filesBelow(`${chartFolder}/templates`), ...chartFiles, valuesFile(example)]) {
    hash.update(`${path}\n${readText(path)}\n`)
  }
  return `# Rendered by "npm run test:kubernetes -- --update" from files with the SHA-256 ${hash.digest('hex')}`
}

const chartFiles = ['Chart.yaml', 'values.yaml'].map(name => `${chartFolder}/${name}`)

type Labels = Readonly<Record<string, string>>

export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Labels }
}

interface Port {
  readonly name: string
  readonly port: number | string
  readonly containerPort: number
  readonly targetPort: string
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}

interface Container {
  readonly image: string
  readonly ports: readonly Port[]
  readonly env: readonly { readonly name: string; readonly value?: string }[]
  readonly envFrom?: readonly object[]
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
  readonly securityContext: object
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
}

export interface Deployment extends KubernetesObject {
  readonly spec: {
    readonly replicas?: number
    readonly selector: { readonly matchLabels: Labels }
    readonly template: {
      readonly metadata: { readonly labels: Labels }
      readonly spec: {
        readonly securityContext?: object
        readonly terminationGracePeriodSeconds: number
        readonly containers: readonly [Container]
        readonly volumes: readonly { readonly name: string; readonly secret?: { readonly secretName: string } }[]
      }
    }
  }
}

export interface Service extends KubernetesObject {
  readonly spec: { readonly selector: Labels; readonly ports: readonly Port[] }
}

interface Rule {
  readonly ports: readonly Port[]
}

export interface NetworkPolicy extends KubernetesObject {
  readonly spec: {
    readonly policyTypes: readonly string[]
    readonly ingress: readonly Rule[]
    readonly egress: readonly Rule[]
  }
}

/** The keys that lead to each value that is not an object, such as `['image', 'tag']`, and to each empty object. */
export function pathsOf(value: unknown): string[][] {
  const entries = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : []
  if (entries.length === 0) return [[]]
  return entries.flatMap(([key, inner]) => pathsOf(inner).map(path => [key, ...path]))
}

/** Parses the objects in a text of several YAML documents. Documents without content are left out. */
export function objectsIn(text: string): KubernetesObject[] {
  return text
    .split(/^---$/m)
    .map(one => defaultLoaders['.yaml']('objects.yaml', one) as KubernetesObject | null | undefined)
    .filter(object => object !== null && object !== undefined)
}
