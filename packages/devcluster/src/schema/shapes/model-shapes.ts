import { ownValue, setOwn } from '@tenon/api'
import * as generated from '@kubernetes/client-node/dist/gen/models/all.js'
import type { SchemaNode } from '../../contract.ts'
import type { ShapeNode } from '../shape-node.ts'
import {
  alwaysPresentFields,
  atomicMaps,
  atomicModels,
  keyDefaults,
  listFacts,
  quantityFields,
  retainKeysFields,
} from './list-facts.ts'
import { requiredFields } from './required-fields.ts'
import { zeroValuesOf } from './zero-values.ts'

interface ModelAttribute {
  readonly baseName: string
  readonly type: string
  readonly format: string
}

interface ModelClass {
  getAttributeTypeMap(): readonly ModelAttribute[]
}

const classes = generated as unknown as Readonly<Record<string, ModelClass | undefined>>
const shapes = new Map<string, ShapeNode>()

/** The attributes of a generated model, by wire name. Throws for an unknown model. */
function attributesOf(model: string): readonly ModelAttribute[] {
  const modelClass = ownValue(classes, model)
  if (modelClass === undefined) throw new Error(`no generated model ${model}`)
  return modelClass.getAttributeTypeMap()
}

/** The schema of a generated model such as `V1Pod`; fields are converted on first use. */
export function modelShape(model: string): ShapeNode {
  let shape = shapes.get(model)
  if (shape === undefined) {
    shape = buildShape(model)
    shapes.set(model, shape)
  }
  return shape
}

function buildShape(model: string): ShapeNode {
  const required = ownValue(requiredFields, model)
  const name = openApiModelName(model)
  const zeros = zeroValuesOf(name)
  let fields: Record<string, SchemaNode> | undefined
  return {
    type: 'object',
    model: name,
    ...(zeros === undefined ? {} : { zeros }),
    // Models refer to each other in cycles, so fields are lazy.
    properties: () => {
      fields ??= fieldShapes(model)
      return fields
    },
    ...(required === undefined ? {} : { required: required.split(' ') }),
    ...(atomicModels.has(model) ? { mapType: 'atomic' as const } : {}),
  }
}

function fieldShapes(model: string): Record<string, SchemaNode> {
  const fields: Record<string, SchemaNode> = {}
  for (const attribute of attributesOf(model)) {
    setOwn(fields, attribute.baseName, fieldShape(`${model}.${attribute.baseName}`, attribute))
  }
  return fields
}

function fieldShape(path: string, attribute: ModelAttribute): ShapeNode {
  const quantity = quantityFields.has(path)
  let shape = typeShape(attribute.type, attribute.format, quantity)
  if (shape.type === 'array') shape = { ...shape, ...listStrategy(path) }
  if (atomicMaps.has(path)) shape = { ...shape, mapType: 'atomic' }
  if (retainKeysFields.has(path)) shape = { ...shape, patchStrategy: 'retainKeys' }
  const keyDefault = ownValue(keyDefaults, path)
  if (keyDefault !== undefined) shape = { ...shape, default: keyDefault }
  if (alwaysPresentFields.has(path) || /\.(?:spec|status|metadata)$/.test(path)) {
    shape = { ...shape, alwaysPresent: true }
  }
  return shape
}

function listStrategy(path: string): Partial<SchemaNode> {
  const fact = ownValue(listFacts, path)
  if (fact === undefined) return { listType: 'atomic' }
  const [strategy, mergeKey] = (fact.patch ?? '').split(':')
  const [listType, keys] = (fact.apply ?? 'atomic').split(':')
  return {
    listType: listType as 'atomic' | 'set' | 'map',
    ...(keys === undefined ? {} : { listMapKeys: keys.split(',') }),
    ...(strategy === undefined || strategy === '' ? {} : { patchStrategy: strategy }),
    ...(mergeKey === undefined ? {} : { patchMergeKey: mergeKey }),
  }
}

const mapType = /^\{ \[key: string\]: (.+); \}$/

function typeShape(type: string, format: string, quantity: boolean): ShapeNode {
  if (type.startsWith('Array<')) {
    return { type: 'array', items: typeShape(type.slice(6, -1), format, quantity) }
  }
  const valueType = mapType.exec(type)?.[1]
  if (valueType !== undefined) {
    return { type: 'object', additionalProperties: typeShape(valueType, format, quantity) }
  }
  switch (type) {
    case 'string':
      if (quantity)
        return { type: 'string', quantity: true, model: 'io.k8s.apimachinery.pkg.api.resource.Quantity' }
      return format === '' ? { type: 'string' } : { type: 'string', format }
    case 'boolean':
      return { type: 'boolean' }
    case 'number':
      return format === 'double' ? { type: 'number', format } : { type: 'integer', format }
    case 'Date':
      return { type: 'string', format: 'date-time', model: `${metaPackage}.Time` }
    case 'V1MicroTime':
      return { type: 'string', format: 'date-time', model: `${metaPackage}.MicroTime` }
    case 'IntOrString':
      return {
        type: 'string',
        format: 'int-or-string',
        intOrString: true,
        model: 'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
      }
    case 'any':
      return { type: 'any', preserveUnknownFields: true }
    default:
      return modelShape(type)
  }
}

const metaPackage = 'io.k8s.apimachinery.pkg.apis.meta.v1'

const metaModels = new Set(
  (
    'V1ObjectMeta V1ListMeta V1LabelSelector V1LabelSelectorRequirement V1OwnerReference V1ManagedFieldsEntry ' +
    'V1Condition V1Status V1StatusDetails V1StatusCause V1DeleteOptions V1Preconditions V1APIGroup V1APIResource ' +
    'V1FieldSelectorRequirement'
  ).split(' '),
)

/** Models in another package than the kind that uses them first. */
const packageExceptions: Readonly<Record<string, string>> = {
  V1TopologySelectorTerm: 'io.k8s.api.core.v1',
  V1TopologySelectorLabelRequirement: 'io.k8s.api.core.v1',
  V1Eviction: 'io.k8s.api.policy.v1',
  V1Scale: 'io.k8s.api.autoscaling.v1',
  V1UserInfo: 'io.k8s.api.authentication.v1',
}

const groupPackages: Readonly<Record<string, string>> = {
  '': 'io.k8s.api.core',
  'apiextensions.k8s.io': 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions',
  'apiregistration.k8s.io': 'io.k8s.kube-aggregator.pkg.apis.apiregistration',
}

const groupPrefix =
  /^(?:Admissionregistration|Apiextensions|Apiregistration|Authentication|Core|Discovery|Events|Flowcontrol|Rbac|Resource|Storage)(?=V\d)/

const packages = new Map<string, string>(Object.entries(packageExceptions))

/**
 * Assigns the models of a kind to an API group. A model keeps its first group, so kinds of the core group must come
 * before kinds with pod templates.
 */
export function claimModels(kindModel: string, group: string, version: string): void {
  const name =
    ownValue(groupPackages, group) ??
    `io.k8s.api.${group.replace(/(?:\.authorization|\.coordination)?\.k8s\.io$/, '')}`
  const pending = [kindModel]
  for (let model = pending.pop(); model !== undefined; model = pending.pop()) {
    if (metaModels.has(model) || (packages.has(model) && model !== kindModel)) continue
    if (!packages.has(model)) packages.set(model, `${name}.${version}`)
    for (const attribute of attributesOf(model)) {
      for (const word of attribute.type.match(/\w+/g) ?? []) {
        if (ownValue(classes, word)?.getAttributeTypeMap !== undefined && word !== 'V1MicroTime')
          pending.push(word)
      }
    }
  }
}

/** `V1Pod` → `io.k8s.api.core.v1.Pod`. */
function openApiModelName(model: string): string {
  const bare = model.replace(groupPrefix, '').replace(/^V\d+((?:alpha|beta)\d+)?/, '')
  if (metaModels.has(model)) return `${metaPackage}.${bare}`
  return `${packages.get(model) ?? 'io.k8s.api.core.v1'}.${bare}`
}
