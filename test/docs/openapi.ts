// Reads docs/openapi.yaml and compares responses and routes of the server with it.
import { Ajv2020 } from 'ajv/dist/2020.js'
import { HEALTH_ROUTES } from '#src/config/types/urls.js'
import { createServices } from '#src/server/create-services.js'
import { authRoutesByPath } from '#src/web/routes/auth-routes.js'
import type { BrowserResponse } from '../helpers/browser.js'
import { testConfig, unreachableIdp } from '../helpers/config.js'
import { readYaml } from '../helpers/repository.js'

type Schema = Readonly<Record<string, unknown>>

interface Header {
  readonly required?: boolean
  readonly schema: Schema
}

export interface DocumentedResponse {
  readonly description: string
  readonly headers?: Readonly<Record<string, Header>>
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>
}

interface Operation {
  readonly operationId: string
  readonly responses: Readonly<Record<string, DocumentedResponse>>
}

export interface OpenApi {
  readonly openapi: string
  readonly info: { readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly responses: Readonly<Record<string, DocumentedResponse>>
    readonly schemas: Readonly<Record<string, Schema>>
    readonly securitySchemes: Readonly<Record<string, { readonly name: string }>>
  }
}

/** Returns the whole document with every reference replaced by its target. */
export function readOpenApi(): OpenApi {
  const [document] = readYaml('docs/openapi.yaml')
  return resolve(document, document) as OpenApi
}

function resolve(part: unknown, document: unknown): unknown {
  if (Array.isArray(part)) return part.map(item => resolve(item, document))
  if (typeof part !== 'object' || part === null) return part
  if ('$ref' in part) return resolve(referredTo(String(part.$ref), document), document)
  return Object.fromEntries(Object.entries(part).map(([name, value]) => [name, resolve(value, document)]))
}

function referredTo(reference: string, document: unknown): unknown {
  const names = reference.replace(/^#\//, '').split('/')
  const target = names.reduce((part, name) => (part as Record<string, unknown> | undefined)?.[name], document)
  if (target === undefined) throw new Error(`${reference} refers to nothing`)
  return target
}

/** Maps each method, path and status, such as `GET /healthz 200`, to the documented response. */
export function documentedAnswers({ paths }: OpenApi): Map<string, DocumentedResponse> {
  const answers = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { responses }]) =>
      Object.entries(responses).map(
        ([status, response]) => [`${method.toUpperCase()} ${path} ${status}`, response] as const
      )
    )
  )
  return new Map(answers)
}

// Headers that HTTP itself or Node's server adds.
const ofTransport = new Set(['date', 'connection', 'keep-alive', 'content-length', 'content-type', 'transfer-encoding'])

const ajv = new Ajv2020({ strict: true, allErrors: true, formats: { uri: canParse, 'uri-reference': canParse } })

function canParse(text: string): boolean {
  return URL.canParse(text, 'http://none')
}

/** Returns one sentence for each difference between the response and the document. */
export function broken({ headers = {}, content = {} }: DocumentedResponse, answer: BrowserResponse): string[] {
  return [...brokenHeaders(headers, answer), ...brokenContent(content, answer)]
}

function brokenHeaders(documented: NonNullable<DocumentedResponse['headers']>, answer: BrowserResponse): string[] {
  const byName = new Map(Object.entries(documented).map(([name, header]) => [name.toLowerCase(), header]))
  const unknown = Object.keys(answer.headers)
    .filter(name => !byName.has(name) && !ofTransport.has(name))
    .map(name => `the header ${name} is not documented`)
  const wrong = [...byName].flatMap(([name, { required, schema }]) => {
    const sent = answer.headers[name]
    if (sent === undefined) return required ? [`the header ${name} is missing`] : []
    return [sent].flat().flatMap(value => mismatches(schema, schema.type === 'integer' ? Number(value) : value, name))
  })
  return [...unknown, ...wrong]
}

function brokenContent(documented: NonNullable<DocumentedResponse['content']>, answer: BrowserResponse): string[] {
  const type = answer.headers['content-type']?.split(';', 1)[0]
  if (type === undefined) {
    const isHead = answer.body.length === 0 && Object.keys(documented).length === 0
    return isHead ? [] : ['there is a body without a type, or none where one is documented']
  }
  const schema = documented[type]?.schema
  // A response to HEAD has a Content-Type but no body.
  if (!schema) return answer.body.length === 0 ? [] : [`a body of the type ${type} is not documented`]
  return mismatches(schema, type === 'application/json' ? answer.json() : answer.text(), type)
}

export function mismatches(schema: Schema, value: unknown, what: string): string[] {
  const validate = ajv.compile(schema)
  if (validate(value)) return []
  return (validate.errors ?? []).map(({ instancePath, message }) => `${what} ${instancePath} ${message}: ${value}`)
}

/** Returns the paths that the server itself handles: the routes of its router and the health checks. */
export function serverRoutes(): string[] {
  const platform = { backchannelLogout: true, issuer: 'https://idp.example', scopes: ['openid'] }
  const routes = authRoutesByPath(createServices(testConfig(unreachableIdp, { mode: 'dual', platform })))
  return [...routes.keys(), ...Object.values(HEALTH_ROUTES)].toSorted()
}
