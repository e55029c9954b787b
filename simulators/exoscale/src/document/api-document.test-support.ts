/** The OpenAPI document of Exoscale, and exchanges checked against it in both directions. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import type { Exchange } from '../api/exchange.ts'
import { type Schema, SchemaChecker } from './schema-check.test-support.ts'

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly required?: boolean
  readonly schema: Schema
}

interface Content {
  readonly content: { readonly 'application/json': { readonly schema: Schema } }
}

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Content & { readonly required?: boolean }
  readonly responses: { readonly '200': Content }
}

interface Served extends Operation {
  readonly method: string
  readonly pattern: RegExp
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** The document lies beside the repository, not in it. */
const documentFile: string = resolve(import.meta.dirname, '../../../../../shared/data/exoscale-openapi.yaml')

/** A reason to skip what needs the document, or false. */
export const documentMissing: string | false = existsSync(documentFile)
  ? false
  : `NOT CHECKED against the OpenAPI document of Exoscale: there is no ${documentFile}`

/** Reads the document. @throws Error when it is not there. */
export function readApiDocument(): ApiDocument {
  // The reader of YAML is slow to load, and most processes have no use for it.
  const { parse } = createRequire(import.meta.url)('yaml') as { parse: (text: string) => unknown }
  return new ApiDocument(parse(readFileSync(documentFile, 'utf8')) as Document)
}

/** What the API is, as far as the document says it. */
export class ApiDocument {
  readonly schemas: Readonly<Record<string, Schema>>
  readonly #operations: readonly Served[]
  readonly #requests: SchemaChecker
  readonly #replies: SchemaChecker

  constructor({ paths, components }: Document) {
    this.schemas = components.schemas
    this.#requests = new SchemaChecker(components.schemas)
    // Security groups of live replies carry a visibility that the document does not declare.
    this.#replies = new SchemaChecker(components.schemas, ['visibility'])
    this.#operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        ...operation,
        method: method.toUpperCase(),
        pattern: patternOf(path),
      })),
    )
  }

  get operationIds(): readonly string[] {
    return this.#operations.map(({ operationId }) => operationId)
  }

  /** Schema of what an operation answers, references followed. */
  replySchema(operationId: string): Schema {
    const operation = this.#operations.find((known) => known.operationId === operationId)
    if (operation === undefined) throw new Error(`the document has no operation ${operationId}`)
    return this.resolve(operation.responses['200'].content['application/json'].schema)
  }

  /** Schema of the body an operation takes. */
  requestSchema(operationId: string): Schema {
    const operation = this.#operations.find((known) => known.operationId === operationId)
    if (operation?.requestBody === undefined) throw new Error(`${operationId} takes no body`)
    return this.resolve(operation.requestBody.content['application/json'].schema)
  }

  resolve(schema: Schema): Schema {
    return this.#replies.resolve(schema)
  }

  /** The operation that an exchange calls. */
  operationIdOf({ method, path }: Pick<Exchange, 'method' | 'path'>): string | undefined {
    return this.#match(method, pathOf(path))?.operation.operationId
  }

  /** What is wrong with a request: path, method, query, parameters, body. */
  requestComplaints({ method, path, body, headers }: Exchange): readonly string[] {
    const found = this.#match(method, pathOf(path))
    if (found === undefined) return [`${method} ${path} is no operation`]
    const { operation, values } = found
    const query = new URLSearchParams(path.split('?').slice(1).join('?'))
    const complaints = [
      ...this.#parameterComplaints(operation, values, query),
      ...this.#bodyComplaints(operation, body, headers),
    ]
    return complaints.map((complaint) => `request of ${operation.operationId}: ${complaint}`)
  }

  /** What is wrong with an answer. Of refusals only the form is known. */
  replyComplaints({ method, path, status, reply }: Exchange): readonly string[] {
    const found = this.#match(method, pathOf(path))
    if (status >= 400) return refusalComplaints(reply).map((complaint) => `${status}: ${complaint}`)
    if (status !== 200 || found === undefined) return []
    const { operationId, responses } = found.operation
    const { schema } = responses['200'].content['application/json']
    return this.#replies.check(schema, reply).map((complaint) => `reply of ${operationId}: ${complaint}`)
  }

  #match(method: string, path: string): { readonly operation: Served; readonly values: Values } | undefined {
    for (const operation of this.#operations) {
      const match = operation.method === method ? operation.pattern.exec(path) : null
      if (match !== null) return { operation, values: match.slice(1).map(decodeURIComponent) }
    }
    return undefined
  }

  #parameterComplaints(operation: Served, values: Values, query: URLSearchParams): readonly string[] {
    const { parameters = [] } = operation
    const inPath = parameters.filter((parameter) => parameter.in === 'path')
    const inQuery = parameters.filter((parameter) => parameter.in === 'query')
    const known = new Set(inQuery.map(({ name }) => name))
    return [
      ...inPath.flatMap(({ name, schema }, at) => this.#requests.check(schema, values[at], name)),
      ...inQuery.flatMap(({ name, schema, required = false }) => {
        const given = query.getAll(name)
        if (given.length === 0) return required ? [`query ${name} is missing`] : []
        return given.flatMap((value) => this.#requests.check(schema, value, name))
      }),
      ...[...query.keys()].filter((name) => !known.has(name)).map((name) => `query ${name} is not declared`),
    ]
  }

  #bodyComplaints({ requestBody }: Operation, body: string, headers: Exchange['headers']): readonly string[] {
    if (requestBody === undefined) return body === '' ? [] : ['a body where none is taken']
    if (body === '') return requestBody.required === true ? ['no body'] : []
    const said =
      headers['content-type'] === 'application/json' ? [] : ['content-type is not application/json']
    let value: unknown
    try {
      value = JSON.parse(body)
    } catch {
      return [...said, 'the body is not JSON']
    }
    return [...said, ...this.#requests.check(requestBody.content['application/json'].schema, value)]
  }
}

type Values = readonly string[]

/** Path below the root of the API, without the query. */
function pathOf(path: string): string {
  return (path.split('?', 1)[0] ?? '').replace(/^\/v2(?=\/)/, '')
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/\{[a-z-]+\}/g, '([^/:]+)')}$`)
}

/** A refusal is an object that says why, in one of three fields. */
function refusalComplaints(reply: unknown): readonly string[] {
  if (reply === undefined) return []
  const { message, error, title } = (reply ?? {}) as Readonly<Record<string, unknown>>
  const isSaid = [message, error, title].some((text) => typeof text === 'string' && text !== '')
  return isSaid ? [] : ['a refusal without message, error or title']
}
