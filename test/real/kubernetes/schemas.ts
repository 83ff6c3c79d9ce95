// JSON Schemas for kubeconform. They are made from the API description of Kubernetes and from the resource definitions of other
// projects, all of which are in Go modules. As the API server does with `fieldValidation=Strict`, the schemas reject unknown fields.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defaultLoaders } from 'cosmiconfig'

/** The part of a schema that this file reads. */
interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly 'x-kubernetes-group-version-kind'?: readonly Kind[]
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
}

interface Kind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

interface Definition {
  readonly kind?: string
  readonly spec: {
    readonly group: string
    readonly names: { readonly kind: string }
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: Schema } }[]
  }
}

/** The address of a schema in the form of kubeconform's option -schema-location. */
export function schemaLocation(folder: string): string {
  return join(folder, '{{.ResourceKind}}{{.KindSuffix}}.json')
}

/** Writes a schema for each kind in the API description of a Kubernetes version. */
export function writeKubernetesSchemas(apiDescription: string, folder: string): void {
  const { definitions } = JSON.parse(readFileSync(apiDescription, 'utf8')) as { definitions: Record<string, Schema> }
  const strict = Object.fromEntries(Object.entries(definitions).map(([name, schema]) => [name, special(name, schema)]))
  mkdirSync(folder, { recursive: true })
  for (const [name, { 'x-kubernetes-group-version-kind': kinds = [] }] of Object.entries(definitions)) {
    const [kind] = kinds
    // Types such as DeleteOptions belong to many groups and are no objects of a cluster.
    if (kind === undefined || kinds.length > 1) continue
    const used = Object.fromEntries([...reachableFrom(name, strict)].map(one => [one, strict[one]]))
    write(folder, kind, { $ref: `#/definitions/${name}`, definitions: used })
  }
}

/** Writes a schema for each kind that the resource definitions (CRDs) in the YAML files of a folder define. */
export function writeCustomSchemas(definitions: string, folder: string): void {
  mkdirSync(folder, { recursive: true })
  for (const file of readdirSync(definitions).filter(name => /\.ya?ml$/.test(name))) {
    for (const text of readFileSync(join(definitions, file), 'utf8').split(/^---$/m)) {
      const definition = defaultLoaders['.yaml'](file, text) as Definition | null | undefined
      if (definition?.kind !== 'CustomResourceDefinition') continue
      const { group, names, versions } = definition.spec
      for (const { name, schema } of versions) {
        write(folder, { group, version: name, kind: names.kind }, strictSchema(schema.openAPIV3Schema))
      }
    }
  }
}

// Types that the API description calls texts, although they may also be numbers.
function special(name: string, schema: Schema): object {
  if (schema.format === 'int-or-string') return { anyOf: [{ type: 'string' }, { type: 'integer' }] }
  if (name.endsWith('.api.resource.Quantity')) return { anyOf: [{ type: 'string' }, { type: 'number' }] }
  return strictSchema(schema)
}

function strictSchema(schema: Schema): Schema {
  const { properties, items, additionalProperties } = schema
  const isOpen = additionalProperties !== undefined || schema['x-kubernetes-preserve-unknown-fields'] === true
  return {
    ...schema,
    ...(properties && { properties: mapValues(properties, strictSchema) }),
    ...(items && { items: strictSchema(items) }),
    ...(typeof additionalProperties === 'object' && { additionalProperties: strictSchema(additionalProperties) }),
    ...(properties && !isOpen && { additionalProperties: false })
  }
}

function mapValues<In, Out>(record: Readonly<Record<string, In>>, change: (value: In) => Out): Record<string, Out> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))
}

function reachableFrom(name: string, definitions: Readonly<Record<string, object>>, found = new Set<string>()) {
  if (found.has(name)) return found
  found.add(name)
  const references = JSON.stringify(definitions[name]).matchAll(/"\$ref":"#\/definitions\/([^"]+)"/g)
  for (const [, reference = ''] of references) reachableFrom(reference, definitions, found)
  return found
}

// kubeconform's KindSuffix contains only the first part of the group.
function write(folder: string, { group, version, kind }: Kind, schema: object): void {
  const suffix = [group.split('.', 1).join(), version].filter(part => part !== '').join('-')
  writeFileSync(join(folder, `${kind.toLowerCase()}-${suffix}.json`), JSON.stringify(schema))
}
