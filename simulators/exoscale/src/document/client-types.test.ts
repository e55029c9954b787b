/** The types and methods of the provider's API client, read as text and checked against the API document. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseSync } from 'oxc-parser'
import { type ApiDocument, documentMissing, readApiDocument } from './api-document.test-support.ts'
import type { Schema } from './schema-check.test-support.ts'

const client = join(import.meta.dirname, '../../../../packages/provider-exoscale/src/api')

/** Where the document says what each interface is. */
const places: Readonly<Record<string, (document: ApiDocument) => readonly Schema[]>> = {
  Zone: ({ schemas }) => [schemas['zone'] ?? {}],
  ExoscaleInstanceType: ({ schemas }) => [schemas['instance-type'] ?? {}],
  Template: ({ schemas }) => [schemas['template'] ?? {}],
  NamedResource: ({ schemas }) => [schemas['security-group'] ?? {}, schemas['private-network'] ?? {}],
  AntiAffinityGroup: ({ schemas }) => [schemas['anti-affinity-group'] ?? {}],
  ExoscaleInstance: (document) => [document.replySchema('get-instance')],
  CreateInstanceRequest: (document) => [document.requestSchema('create-instance')],
  UpdateInstanceRequest: (document) => [document.requestSchema('update-instance')],
  Operation: (document) => [document.replySchema('create-instance')],
  Manager: ({ schemas }) => [schemas['manager'] ?? {}],
  PoolShape: (document) => [
    document.replySchema('get-instance-pool'),
    document.schemas['sks-nodepool'] ?? {},
  ],
  InstancePool: (document) => [document.replySchema('get-instance-pool')],
  SksNodepool: ({ schemas }) => [schemas['sks-nodepool'] ?? {}],
  SksCluster: ({ schemas }) => [schemas['sks-cluster'] ?? {}],
  ScaleRequest: (document) => [
    document.requestSchema('scale-sks-nodepool'),
    document.requestSchema('scale-instance-pool'),
  ],
  EvictRequest: (document) => [
    document.requestSchema('evict-sks-nodepool-members'),
    document.requestSchema('evict-instance-pool-members'),
  ],
  Quota: (document) => [document.replySchema('get-quota')],
}
const requests: ReadonlySet<string> = new Set([
  'CreateInstanceRequest',
  'UpdateInstanceRequest',
  'ScaleRequest',
  'EvictRequest',
])

/** A type as the parser gives it; only what is looked at here. */
interface TypeNode {
  readonly type: string
  readonly typeName?: { readonly name: string }
  readonly typeArguments?: { readonly params: readonly TypeNode[] } | null
  readonly typeAnnotation?: TypeNode
  readonly elementType?: TypeNode
  readonly types?: readonly TypeNode[]
  readonly literal?: { readonly value: unknown }
  readonly members?: readonly Member[]
}

interface Member {
  readonly type: string
  readonly key: { readonly name?: string; readonly value?: string }
  readonly optional: boolean
  readonly typeAnnotation?: { readonly typeAnnotation: TypeNode } | null
}

interface Declarations {
  readonly interfaces: ReadonlyMap<string, readonly Member[]>
  readonly aliases: ReadonlyMap<string, TypeNode>
}

test('the fields of the API client have the names and types that the API document gives them', {
  skip: documentMissing,
}, () => {
  const document = readApiDocument()
  const declared = declarationsIn(readFileSync(join(client, 'types.ts'), 'utf8'))
  const unplaced = [...declared.interfaces.keys()].filter((name) => !(name in places) && name !== 'Reference')
  assert.deepEqual(unplaced, [], 'each interface has a place in the document')
  const complaints = Object.entries(places).flatMap(([name, place]) => {
    const members = declared.interfaces.get(name)
    if (members === undefined) return [`${name} is not declared`]
    return place(document).flatMap((schema) => [
      ...new Comparison(document, declared).members(members, schema, name),
      ...(requests.has(name) ? lacking(members, schema, name) : []),
    ])
  })
  assert.deepEqual(complaints, [])
})

test('a field of another name or type is told', { skip: documentMissing }, () => {
  const document = readApiDocument()
  const declared = declarationsIn(`export interface Zone {
    readonly name?: number
    readonly 'api-endpoints'?: string
    readonly 'sos-endpoint'?: readonly string[]
  }`)
  const members = declared.interfaces.get('Zone') ?? []
  const [schema = {}] = places['Zone']?.(document) ?? []
  assert.deepEqual(new Comparison(document, declared).members(members, schema, 'Zone'), [
    'Zone.name is number here, string there',
    'Zone.api-endpoints is not in the document',
    'Zone.sos-endpoint is a list here, string there',
  ])
})

test('each method of the API client is named after the operation it calls', { skip: documentMissing }, () => {
  const known = new Set(readApiDocument().operationIds)
  const text = readFileSync(join(client, 'client.ts'), 'utf8')
  const { body } = parseSync('client.ts', text).program
  const declarations = body.flatMap((statement) =>
    statement.type === 'ExportNamedDeclaration' && statement.declaration?.type === 'ClassDeclaration'
      ? statement.declaration.body.body
      : [],
  )
  const methods = declarations.flatMap((member) =>
    member.type === 'MethodDefinition' && member.kind === 'method' && member.key.type === 'Identifier'
      ? [member.key.name]
      : [],
  )
  assert.ok(methods.length > 10)
  const operations = methods.map((name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`))
  assert.deepEqual(
    operations.filter((operation) => !known.has(operation)),
    ['wait-for-operation'],
  )
})

class Comparison {
  readonly #document: ApiDocument
  readonly #declared: Declarations

  constructor(document: ApiDocument, declared: Declarations) {
    this.#document = document
    this.#declared = declared
  }

  members(members: readonly Member[], schema: Schema, path: string): readonly string[] {
    return members.flatMap((member) => {
      const name = nameOf(member)
      const known = schema.properties?.[name]
      if (known === undefined) return [`${path}.${name} is not in the document`]
      const type = member.typeAnnotation?.typeAnnotation
      return type === undefined ? [] : this.#type(type, this.#document.resolve(known), `${path}.${name}`)
    })
  }

  #type(type: TypeNode, schema: Schema, path: string): readonly string[] {
    const here = this.#simple(type)
    const kind = here.type.replace(/^TS|Keyword$/g, '').toLowerCase()
    if (here.type === 'TSArrayType') {
      if (schema.type !== 'array') return [`${path} is a list here, ${schema.type} there`]
      const items = this.#document.resolve(schema.items ?? {})
      return this.#type(here.elementType ?? here, items, `${path}[]`)
    }
    if (here.type === 'TSUnionType') {
      const values = (here.types ?? []).map((each) => each.literal?.value)
      return sameSet(values, schema.enum ?? []) ? [] : [`${path} has other values: ${values.join(', ')}`]
    }
    if (here.type === 'TSTypeLiteral') return this.members(here.members ?? [], schema, path)
    if (here.type !== 'TSTypeReference') {
      const there = schema.type === 'integer' ? 'number' : schema.type
      return kind === there ? [] : [`${path} is ${kind} here, ${there} there`]
    }
    const name = here.typeName?.name ?? ''
    if (name === 'Record') {
      const isMap = schema.additionalProperties !== undefined
      return isMap ? [] : [`${path} is a map here, but not there`]
    }
    const members = this.#declared.interfaces.get(name)
    return members === undefined
      ? [`${path} is of unknown type ${name}`]
      : this.members(members, schema, path)
  }

  /** Without `readonly`, `Readonly`, `Partial`, brackets and names of simple types. */
  #simple(type: TypeNode): TypeNode {
    const [argument] = type.typeArguments?.params ?? []
    const name = type.typeName?.name ?? ''
    if ((name === 'Readonly' || name === 'Partial') && argument !== undefined) return this.#simple(argument)
    const inner = type.typeAnnotation
    const isWrapped = type.type === 'TSTypeOperator' || type.type === 'TSParenthesizedType'
    if (isWrapped && inner !== undefined) return this.#simple(inner)
    const alias = this.#declared.aliases.get(name)
    return alias === undefined ? type : this.#simple(alias)
  }
}

/** What a request must carry but this type lets out. */
function lacking(members: readonly Member[], schema: Schema, path: string): readonly string[] {
  const given = new Set(members.filter(({ optional }) => !optional).map(nameOf))
  return (schema.required ?? [])
    .filter((name) => !given.has(name))
    .map((name) => `${path}.${name} is optional`)
}

/** The interfaces and aliases of a file; members that are inherited come first. */
function declarationsIn(text: string): Declarations {
  const interfaces = new Map<string, readonly Member[]>()
  const aliases = new Map<string, TypeNode>()
  for (const statement of parseSync('types.ts', text).program.body) {
    const declaration = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
    if (declaration?.type === 'TSTypeAliasDeclaration') {
      aliases.set(declaration.id.name, JSON.parse(JSON.stringify(declaration.typeAnnotation)) as TypeNode)
    }
    if (declaration?.type !== 'TSInterfaceDeclaration') continue
    const parents = declaration.extends.flatMap(({ expression }) =>
      expression.type === 'Identifier' ? (interfaces.get(expression.name) ?? []) : [],
    )
    const own = JSON.parse(JSON.stringify(declaration.body.body)) as readonly Member[]
    interfaces.set(declaration.id.name, [...parents, ...own])
  }
  return { interfaces, aliases }
}

function nameOf({ key }: Member): string {
  return key.name ?? key.value ?? ''
}

function sameSet(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item) => b.includes(item))
}
