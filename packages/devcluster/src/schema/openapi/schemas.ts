import { setOwn, ownValue } from '@tenon/api'
import type { ResourceDefinition, SchemaNode } from '../../contract.ts'
import { propertiesOf, type ShapeNode } from '../shape-node.ts'
import { modelShape } from '../shapes/model-shapes.ts'

type Json = Record<string, unknown>

/** The two forms of OpenAPI documents; they differ in the place of models and in mixed types. */
export type Dialect = 'v2' | 'v3'

const refRoots: Readonly<Record<Dialect, string>> = { v2: '#/definitions/', v3: '#/components/schemas/' }

const intOrStringModel = 'io.k8s.apimachinery.pkg.util.intstr.IntOrString'
const quantityModel = 'io.k8s.apimachinery.pkg.api.resource.Quantity'

/** Collects the models of a set of definitions. */
export class SchemaCollection {
  readonly schemas: Json = {}
  private readonly dialect: Dialect
  private readonly pending: [name: string, node: SchemaNode][] = []

  constructor(dialect: Dialect) {
    this.dialect = dialect
  }

  /** `{ $ref }` to a model, which is written as well. */
  reference(name: string, node: SchemaNode): Json {
    if (!Object.hasOwn(this.schemas, name)) {
      setOwn(this.schemas, name, {})
      this.pending.push([name, node])
    }
    return { $ref: refRoots[this.dialect] + name }
  }

  /** Writes all referenced models, and those that they refer to. */
  complete(): void {
    for (let next = this.pending.pop(); next !== undefined; next = this.pending.pop()) {
      const [name, node] = next
      Object.assign(ownValue(this.schemas, name) as Json, this.body(node, true))
    }
  }

  private property(node: SchemaNode): Json {
    if (node.model === undefined) return this.body(node, false)
    const reference = this.reference(node.model, node)
    const extras: Json = {
      ...(node.default === undefined ? {} : { default: node.default }),
      ...patchExtensions(node),
    }
    if (Object.keys(extras).length === 0) return reference
    return this.dialect === 'v3' ? { allOf: [reference], ...extras } : { ...reference, ...extras }
  }

  private body(node: SchemaNode, isModel: boolean): Json {
    // Clients refuse fields that an OpenAPI 2 model does not list, so a model with unknown fields lists none.
    const isOpen = this.dialect === 'v2' && node.preserveUnknownFields === true
    const properties = node.properties === undefined || isOpen ? undefined : propertiesOf(node)
    return {
      ...(node.description === undefined ? {} : { description: node.description }),
      ...this.typeOf(node),
      ...(node.enum === undefined ? {} : { enum: node.enum }),
      ...(node.default === undefined || isModel ? {} : { default: node.default }),
      ...(node.required === undefined || isOpen ? {} : { required: node.required }),
      ...(properties === undefined ? {} : { properties: this.propertiesOf(properties) }),
      ...(node.additionalProperties === undefined
        ? {}
        : { additionalProperties: this.property(node.additionalProperties) }),
      ...(node.items === undefined ? {} : { items: this.property(node.items) }),
      ...mergeExtensions(node),
      // Merge extensions belong to the field, not to its model.
      ...(isModel ? {} : patchExtensions(node)),
    }
  }

  private propertiesOf(properties: Readonly<Record<string, SchemaNode>>): Json {
    return Object.fromEntries(
      Object.keys(properties)
        .sort()
        .map((name) => [name, this.property(ownValue(properties, name) as SchemaNode)]),
    )
  }

  private typeOf(node: ShapeNode): Json {
    if (node.intOrString === true) {
      if (this.dialect === 'v3' && node.model === intOrStringModel) {
        return { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] }
      }
      return node.model === undefined
        ? { 'x-kubernetes-int-or-string': true }
        : { type: 'string', format: 'int-or-string' }
    }
    if (node.model === quantityModel && this.dialect === 'v3') {
      return { oneOf: [{ type: 'string' }, { type: 'number' }] }
    }
    if (node.type === 'any')
      return node.preserveUnknownFields === true && this.dialect === 'v3' ? { type: 'object' } : {}
    return { type: node.type, ...(node.format === undefined ? {} : { format: node.format }) }
  }
}

function mergeExtensions(node: SchemaNode): Json {
  return {
    ...(node.listType === undefined ? {} : { 'x-kubernetes-list-type': node.listType }),
    ...(node.listMapKeys === undefined ? {} : { 'x-kubernetes-list-map-keys': node.listMapKeys }),
    ...(node.mapType === undefined ? {} : { 'x-kubernetes-map-type': node.mapType }),
    ...(node.preserveUnknownFields === true ? { 'x-kubernetes-preserve-unknown-fields': true } : {}),
  }
}

function patchExtensions(node: SchemaNode): Json {
  return {
    ...(node.patchMergeKey === undefined ? {} : { 'x-kubernetes-patch-merge-key': node.patchMergeKey }),
    ...(node.patchStrategy === undefined ? {} : { 'x-kubernetes-patch-strategy': node.patchStrategy }),
  }
}

/** The model name of a kind's objects (`io.k8s.api.core.v1.Pod`, `sh.karpenter.v1.NodePool`). */
export function kindModel({ group, version, kind, schema }: ResourceDefinition): string {
  return schema.model ?? `${group.split('.').toReversed().join('.')}.${version}.${kind}`
}

/** Adds the object and list models of a kind. */
export function addKind(collection: SchemaCollection, definition: ResourceDefinition): void {
  const name = kindModel(definition)
  collection.reference(name, definition.schema)
  const listName = `${name.slice(0, -definition.kind.length)}${definition.listKind}`
  const list: SchemaNode = {
    type: 'object',
    description: `${definition.listKind} is a list of ${definition.kind}`,
    required: ['items'],
    properties: {
      apiVersion: { type: 'string' },
      items: { type: 'array', items: { ...definition.schema, model: name } },
      kind: { type: 'string' },
      metadata: modelShape('V1ListMeta'),
    },
  }
  collection.reference(listName, list)
  collection.complete()
  mark(ownValue(collection.schemas, name), definition, definition.kind)
  mark(ownValue(collection.schemas, listName), definition, definition.listKind)
}

function mark(schema: unknown, { group, version }: ResourceDefinition, kind: string): void {
  if (typeof schema !== 'object' || schema === null) return
  Object.assign(schema, { 'x-kubernetes-group-version-kind': [{ group, kind, version }] })
}
