import { isQuantity, ownValue } from '@tenon/api'
import type { FieldError, ResourceDefinition, SchemaNode } from '../../contract.ts'
import { propertiesOf, type ShapeNode } from '../shape-node.ts'

/** Required in the models, but absent or empty in valid objects. */
const lenientFields = new Set([
  // Checked with the webhook, where kube-apiserver names the other one of the two.
  'io.k8s.api.admissionregistration.v1.ServiceReference.name',
  'io.k8s.api.admissionregistration.v1.ServiceReference.namespace',
  'io.k8s.api.storage.v1.CSINodeSpec.drivers',
  'io.k8s.api.discovery.v1.EndpointSlice.endpoints',
  'io.k8s.api.rbac.v1.Role.rules',
  'io.k8s.api.networking.v1.NetworkPolicySpec.podSelector',
  'io.k8s.api.core.v1.Event.metadata',
  'io.k8s.api.core.v1.Event.involvedObject',
  'io.k8s.api.events.v1.Event.eventTime',
  'io.k8s.api.core.v1.Binding.target',
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition.spec',
  'io.k8s.api.core.v1.ContainerPort.protocol',
  'io.k8s.api.core.v1.HTTPHeader.value',
  'io.k8s.api.core.v1.Sysctl.value',
  'io.k8s.api.resource.v1.Device.name',
  'io.k8s.api.resource.v1.DeviceRequest.name',
  'io.k8s.api.resource.v1.DeviceSubRequest.name',
  'io.k8s.api.resource.v1.DeviceTaint.key',
  'io.k8s.api.resource.v1beta2.DeviceTaint.key',
  // An empty spec is refused as missing.
  'io.k8s.api.scheduling.v1alpha2.PodGroup.spec',
  'io.k8s.api.scheduling.v1alpha2.PodGroupSpec.schedulingPolicy',
  'io.k8s.api.scheduling.v1alpha2.PodGroupTemplate.schedulingPolicy',
  'io.k8s.api.scheduling.v1alpha2.Workload.spec',
])

/** Required texts for which empty means missing. */
const neverEmpty = new Set([
  'name',
  'key',
  'mountPath',
  'devicePath',
  'topologyKey',
  'operator',
  'kind',
  'provisioner',
  'handler',
  'driver',
  'attacher',
  'nodeID',
  'image',
])

/**
 * Validates types, required fields and quantities with a built-in schema, except status. Kinds add their own
 * validation. Parts shared with `known`, a valid value of the same field, are skipped.
 */
export function checkShape(
  value: unknown,
  node: ShapeNode,
  path: string,
  errors: FieldError[],
  known?: unknown,
): void {
  if (value === undefined || value === null || node.type === 'any') return
  if (!hasType(value, node)) {
    const actual = Array.isArray(value) ? 'array' : typeof value
    const detail = `json: cannot unmarshal ${actual} into field ${path} of type ${goType(node)}`
    errors.push({
      kind: 'typeInvalid',
      field: path,
      value: typeof value === 'object' ? actual : value,
      detail,
    })
  } else if (Array.isArray(value)) {
    const items = node.items as SchemaNode
    if (
      items.type === 'string' &&
      (items as ShapeNode).quantity !== true &&
      value.every((item) => typeof item === 'string')
    )
      return
    for (let index = 0; index < value.length; index++)
      checkShape(value[index], items, `${path}[${index}]`, errors)
  } else if (typeof value === 'object') {
    const sound = typeof known === 'object' && known !== null ? (known as Record<string, unknown>) : {}
    checkRecord(value as Readonly<Record<string, unknown>>, node, path, errors, sound)
  } else checkScalar(value, node, path, errors)
}

function checkScalar(value: unknown, node: ShapeNode, path: string, errors: FieldError[]): void {
  if (node.quantity === true && typeof value === 'string' && !isQuantity(value)) {
    const detail =
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    errors.push({ kind: 'typeInvalid', field: path, value, detail })
  } else if (typeof value === 'number' && node.format === 'int32' && !isInt32(value)) {
    const detail = `json: cannot unmarshal number ${value} into field ${path} of type int32`
    errors.push({ kind: 'typeInvalid', field: path, value, detail })
  }
}

const isInt32 = (value: number): boolean => value >= -2_147_483_648 && value <= 2_147_483_647

/** The Go type of a field, as in decoding errors. */
function goType(node: ShapeNode): string {
  if (node.type === 'boolean') return 'bool'
  return node.format === undefined || node.format === '' ? node.type : node.format
}

/**
 * Why an object of a built-in kind cannot be decoded (a text instead of a number), which the API server reports with
 * code 400; undefined if it can.
 */
export function decodingError(
  { kind, version }: ResourceDefinition,
  errors: readonly FieldError[],
): string | undefined {
  const first = errors.find((error) => error.kind === 'typeInvalid')
  if (first === undefined) return undefined
  return `${kind} in version "${version}" cannot be handled as a ${kind}: ${first.detail}`
}

function hasType(value: unknown, node: ShapeNode): boolean {
  switch (node.type) {
    case 'object':
      return typeof value === 'object' && !Array.isArray(value)
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return typeof value === 'number' && Number.isInteger(value)
    case 'number':
      return typeof value === 'number'
    case 'boolean':
      return typeof value === 'boolean'
    case 'any':
      return true
    case 'string':
      if (typeof value === 'string') return true
      return typeof value === 'number' && (node.intOrString === true || node.quantity === true)
  }
}

function checkRecord(
  record: Readonly<Record<string, unknown>>,
  node: ShapeNode,
  path: string,
  errors: FieldError[],
  known: Readonly<Record<string, unknown>>,
): void {
  const properties = propertiesOf(node)
  const prefix = path === '' ? '' : `${path}.`
  if (node.required !== undefined) {
    for (const name of node.required) {
      if (isMissing(ownValue(record, name), name) && !lenientFields.has(`${node.model}.${name}`)) {
        errors.push({ kind: 'required', field: prefix + name, detail: '' })
      }
    }
  }
  const values = node.additionalProperties
  for (const key in record) {
    // Status is only written by parts of the cluster.
    if (path === '' && key === 'status') continue
    const value = ownValue(record, key)
    const child: SchemaNode | undefined = ownValue(properties, key) ?? values
    if (child === undefined || isPlainText(value, child)) continue
    if (typeof value === 'object' && value === ownValue(known, key)) continue
    checkShape(
      value,
      child,
      values === child ? `${path}[${key}]` : prefix + key,
      errors,
      ownValue(known, key),
    )
  }
}

/** A fast check for the most frequent case. */
function isPlainText(value: unknown, node: ShapeNode): boolean {
  return typeof value === 'string' && node.type === 'string' && node.quantity !== true
}

function isMissing(value: unknown, name: string): boolean {
  if (value === undefined || value === null) return true
  return value === '' && neverEmpty.has(name)
}
