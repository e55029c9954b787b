import { ownValue } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'
import { isRecord, jsonEqual } from '../shape-node.ts'
import { type Findings, listOf } from './reporting.ts'
import { checkTaints } from './scheduling.ts'
import { checkAccessModes, checkClaimSpec, checkStorage } from './claims.ts'
import { checkLabelSelector } from './selectors.ts'
import { checkIntOrPercent } from './workloads.ts'

type Check = (object: StoredObject, old: StoredObject | undefined, found: Findings) => void

function specOf(object: StoredObject | undefined): Loose | undefined {
  return object?.['spec'] as Loose | undefined
}

export const checkNode: Check = (object, old, found) => {
  const spec = specOf(object)
  checkTaints(listOf(spec, 'taints'), 'spec.taints', found)
  const before: unknown = specOf(old)?.['providerID']
  if (typeof before === 'string' && before !== '' && spec?.['providerID'] !== before) {
    found.forbidden('spec.providerID', 'node updates may not change providerID except from "" to valid')
  }
  const cidr: unknown = specOf(old)?.['podCIDR']
  if (typeof cidr === 'string' && cidr !== '' && spec?.['podCIDR'] !== cidr) {
    found.forbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid')
  }
}

const portRange = 'must be between 1 and 65535, inclusive'

export const checkService: Check = (object, old, found) => {
  const spec = specOf(object)
  if (spec === undefined) return
  const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
  found.oneOf('spec.type', spec['type'], types)
  found.oneOf('spec.sessionAffinity', spec['sessionAffinity'], ['ClientIP', 'None'])
  const ports = listOf(spec, 'ports')
  if (ports.length === 0 && spec['type'] !== 'ExternalName' && spec['clusterIP'] !== 'None')
    found.required('spec.ports')
  if (spec['type'] === 'ExternalName' && !spec['externalName']) found.required('spec.externalName')
  checkServicePorts(ports, found)
  const before = specOf(old)
  const address: unknown = before?.['clusterIP']
  if (
    typeof address === 'string' &&
    address !== '' &&
    spec['type'] !== 'ExternalName' &&
    before?.['type'] !== 'ExternalName'
  ) {
    if (spec['clusterIP'] !== address) {
      found.invalid('spec.clusterIPs[0]', [spec['clusterIP']], 'may not change once set')
    }
  }
}

function checkServicePorts(ports: readonly Loose[], found: Findings): void {
  const names = new Set<unknown>()
  const numbers = new Set<string>()
  for (const [index, { name, port, protocol, targetPort, nodePort }] of ports.entries()) {
    const at = `spec.ports[${index}]`
    if (ports.length > 1 && (name === undefined || name === '')) found.required(`${at}.name`)
    if (name !== undefined && names.has(name)) found.duplicate(`${at}.name`, name)
    names.add(name)
    if (typeof port === 'number' && (port < 1 || port > 65_535)) found.invalid(`${at}.port`, port, portRange)
    if (typeof targetPort === 'number' && (targetPort < 1 || targetPort > 65_535)) {
      found.invalid(`${at}.targetPort`, targetPort, portRange)
    }
    if (typeof nodePort === 'number' && nodePort !== 0 && (nodePort < 30_000 || nodePort > 32_767)) {
      found.invalid(
        `${at}.nodePort`,
        nodePort,
        'provided port is not in the valid range. The range of valid ports is 30000-32767',
      )
    }
    found.oneOf(`${at}.protocol`, protocol, ['SCTP', 'TCP', 'UDP'])
    const identity = `${port}/${protocol ?? 'TCP'}`
    if (numbers.has(identity)) found.duplicate(at, { port, protocol })
    numbers.add(identity)
  }
}

const dataKey = /^[-._a-zA-Z0-9]+$/
const maxDataBytes = 1_048_576
const keyWords =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or " +
  "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

function checkData(
  object: StoredObject,
  old: StoredObject | undefined,
  fields: readonly string[],
  found: Findings,
): void {
  let size = 0
  for (const field of fields) {
    const data: unknown = ownValue(object, field)
    if (!isRecord(data)) continue
    for (const [key, value] of Object.entries(data)) {
      if (!dataKey.test(key) || key.length > 253) found.invalid(`${field}[${key}]`, key, keyWords)
      size += typeof value === 'string' ? value.length : 0
    }
  }
  if (size > maxDataBytes) {
    found.errors.push({
      kind: 'tooLong',
      field: fields[0] ?? '',
      detail: `may not be more than ${maxDataBytes} bytes`,
    })
  }
  if (old?.['immutable'] !== true) return
  if (object['immutable'] !== true) found.forbidden('immutable', 'field is immutable when `immutable` is set')
  for (const field of fields) {
    if (!jsonEqual(ownValue(object, field), ownValue(old, field)))
      found.forbidden(field, 'field is immutable when `immutable` is set')
  }
}

export const checkConfigMap: Check = (object, old, found) =>
  checkData(object, old, ['data', 'binaryData'], found)

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

export const checkSecret: Check = (object, old, found) => {
  checkData(object, old, ['data'], found)
  for (const [key, value] of Object.entries(isRecord(object['data']) ? object['data'] : {})) {
    if (typeof value === 'string' && !base64.test(value.replace(/\s/g, ''))) {
      found.invalid(`data[${key}]`, '<redacted>', 'illegal base64 data')
    }
  }
  if (old !== undefined && object['type'] !== old['type'])
    found.invalid('type', object['type'], 'field is immutable')
}

export const checkDisruptionBudget: Check = (object, _old, found) => {
  const spec = specOf(object)
  if (spec === undefined) return
  const { minAvailable, maxUnavailable, selector } = spec
  if (minAvailable !== undefined && maxUnavailable !== undefined) {
    found.invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set')
  }
  checkIntOrPercent(minAvailable, 'spec.minAvailable', found)
  checkIntOrPercent(maxUnavailable, 'spec.maxUnavailable', found)
  checkLabelSelector(selector, 'spec.selector', found)
  found.oneOf('spec.unhealthyPodEvictionPolicy', spec['unhealthyPodEvictionPolicy'], [
    'AlwaysAllow',
    'IfHealthyBudget',
  ])
}

export const checkPersistentVolumeClaim: Check = (object, old, found) => {
  const spec = specOf(object)
  checkClaimSpec(spec, 'spec', found)
  if (spec === undefined) return
  const before = specOf(old)
  if (before === undefined) return
  const bound = (value: Loose): Loose => {
    const { resources: _resources, volumeName, volumeAttributesClassName: _class, ...rest } = value
    if (before['volumeName'] !== undefined && before['volumeName'] !== '') return { ...rest, volumeName }
    if (before['storageClassName'] !== undefined) return rest
    // A claim without a class may be given one later.
    const { storageClassName: _given, ...unclassed } = rest
    return unclassed
  }
  if (!jsonEqual(bound(spec), bound(before))) {
    found.forbidden(
      'spec',
      'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
    )
  }
}

export const checkPersistentVolume: Check = (object, _old, found) => {
  const spec = specOf(object)
  if (spec === undefined) return found.required('spec')
  checkAccessModes(spec['accessModes'], 'spec.accessModes', found)
  if (!isRecord(spec['capacity'])) found.required('spec.capacity')
  else checkStorage(spec['capacity']['storage'], 'spec.capacity[storage]', found)
  found.oneOf('spec.persistentVolumeReclaimPolicy', spec['persistentVolumeReclaimPolicy'], [
    'Delete',
    'Recycle',
    'Retain',
  ])
}

export const checkStorageClass: Check = (object, old, found) => {
  found.oneOf('reclaimPolicy', object['reclaimPolicy'], ['Delete', 'Retain'])
  found.oneOf('volumeBindingMode', object['volumeBindingMode'], ['Immediate', 'WaitForFirstConsumer'])
  if (old === undefined) return
  for (const field of ['provisioner', 'parameters', 'reclaimPolicy', 'volumeBindingMode']) {
    if (!jsonEqual(ownValue(object, field), ownValue(old, field)))
      found.forbidden(field, `updates to ${field} are forbidden.`)
  }
}

const highestUserPriority = 1_000_000_000

export const checkPriorityClass: Check = (object, old, found) => {
  const value: unknown = object['value']
  const isSystem = object.metadata.name.startsWith('system-')
  if (typeof value === 'number' && value > highestUserPriority && !isSystem) {
    found.forbidden('value', `maximum allowed value of a user defined priority is ${highestUserPriority}`)
  }
  found.oneOf('preemptionPolicy', object['preemptionPolicy'], ['Never', 'PreemptLowerPriority'])
  if (old === undefined) return
  if (old['value'] !== value) found.invalid('value', value, 'may not be changed in an update.')
  if (old['preemptionPolicy'] !== object['preemptionPolicy']) {
    found.invalid('preemptionPolicy', object['preemptionPolicy'], 'field is immutable')
  }
}

export const checkLease: Check = (object, _old, found) => {
  const spec = specOf(object)
  const duration: unknown = spec?.['leaseDurationSeconds']
  if (typeof duration === 'number' && duration <= 0) {
    found.invalid('spec.leaseDurationSeconds', duration, 'must be greater than 0')
  }
  found.notNegative('spec.leaseTransitions', spec?.['leaseTransitions'])
}
