import type { SchemaNode } from '../../contract.ts'
import { modelShape } from '../shapes/model-shapes.ts'
import { type JsonSchema, valueSchema } from './json-schema.ts'

/** The merge schema of a custom resource: that of its CRD with standard object metadata. */
export function rootSchemaNode(schema: JsonSchema, kind: string): SchemaNode {
  const node = schemaNode(schema)
  return { ...node, type: 'object', properties: { ...objectFields(kind), ...withoutMeta(node) } }
}

function objectFields(kind: string): Record<string, SchemaNode> {
  return {
    apiVersion: { type: 'string', description: 'Version of the API group this object is written in.' },
    kind: { type: 'string', description: `The kind of object: ${kind}.` },
    metadata: modelShape('V1ObjectMeta'),
  }
}

function withoutMeta(node: SchemaNode): Record<string, SchemaNode> {
  const {
    apiVersion: _a,
    kind: _k,
    metadata: _m,
    ...rest
  } = { ...(node.properties as Record<string, SchemaNode>) }
  return rest
}

type NodeType = SchemaNode['type']

function nodeType(schema: JsonSchema): NodeType {
  if (schema['x-kubernetes-int-or-string'] === true) return 'string'
  return (schema.type as NodeType | undefined) ?? 'any'
}

/** Converts a schema of a CRD to the form that other parts of the API server use. */
function schemaNode(schema: JsonSchema): SchemaNode {
  const embedded = schema['x-kubernetes-embedded-resource'] === true
  const properties = schema.properties ?? (embedded ? {} : undefined)
  const values = valueSchema(schema)
  return {
    type: nodeType(schema),
    ...optional('format', schema.format),
    ...optional('description', schema.description),
    ...optional('required', schema.required),
    ...optional('enum', schema.enum),
    ...optional('default', schema.default),
    ...(schema['x-kubernetes-int-or-string'] === true ? { intOrString: true } : {}),
    ...(keepsUnknown(schema) ? { preserveUnknownFields: true } : {}),
    ...(schema['x-kubernetes-map-type'] === 'atomic' ? { mapType: 'atomic' as const } : {}),
    ...(properties === undefined
      ? {}
      : { properties: { ...(embedded ? objectFields('any') : {}), ...mapValues(properties, schemaNode) } }),
    ...(values === undefined ? {} : { additionalProperties: schemaNode(values) }),
    ...(schema.items === undefined ? {} : { items: schemaNode(schema.items), ...listStrategy(schema) }),
  }
}

/** Whether unknown fields are kept. */
function keepsUnknown(schema: JsonSchema): boolean {
  return schema['x-kubernetes-preserve-unknown-fields'] === true || schema.additionalProperties === true
}

function listStrategy(schema: JsonSchema): Partial<SchemaNode> {
  const listType = schema['x-kubernetes-list-type'] as 'atomic' | 'set' | 'map' | undefined
  return {
    listType: listType ?? 'atomic',
    ...(listType === 'map' ? { listMapKeys: schema['x-kubernetes-list-map-keys'] ?? [] } : {}),
  }
}

function optional<K extends string, V>(key: K, value: V | undefined): { [key in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [key in K]: V })
}

function mapValues<A, B>(record: Readonly<Record<string, A>>, change: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))
}
