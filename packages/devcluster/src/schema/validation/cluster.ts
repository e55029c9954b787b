import { isRecord, ownValue, quantityNanos } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'
import { jsonEqual } from '../shape-node.ts'
import { type Findings, listOf, textsOf } from './reporting.ts'
import { checkKey, checkPortOrName } from './containers.ts'
import {
  dnsLabelErrors,
  finalizerNameErrors,
  labelErrors,
  nameErrors,
  qualifiedNameErrors,
} from './metadata.ts'
import { checkCidr, checkServiceFields } from './network.ts'
import { checkNodeTerms, checkTaints, checkTolerations } from './scheduling.ts'
import { checkAccessModes, checkClaimSpec, checkStorage } from './claims.ts'
import { checkLabelSelector } from './selectors.ts'
import { checkDriverName, checkVolumeSource } from './volumes.ts'
import { checkAtMostAll, checkIntOrPercent } from './workloads.ts'

type Check = (object: StoredObject, old: StoredObject | undefined, found: Findings) => void

function specOf(object: StoredObject | undefined): Loose | undefined {
  return object?.['spec'] as Loose | undefined
}

export const checkNode: Check = (object, old, found) => {
  const spec = specOf(object)
  const ranges = textsOf(spec, 'podCIDRs')
  for (const [index, range] of ranges.entries()) checkCidr(range, `spec.podCIDRs[${index}]`, found)
  if (ranges.length > 2)
    found.invalid('spec.podCIDRs', ranges, 'may specify no more than one CIDR for each IP family')
  if (old === undefined) checkNodeStatus(object['status'] as Loose | undefined, found)
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

function checkNodeStatus(status: Loose | undefined, found: Findings): void {
  for (const list of ['allocatable', 'capacity']) {
    for (const [name, amount] of Object.entries((ownValue(status, list) ?? {}) as Loose)) {
      const nanos = quantityNanos(String(amount))
      if (nanos === undefined) continue
      const path = `status.${list}.${name}`
      if (nanos < 0n) found.invalid(path, amount, 'must be greater than or equal to 0')
      if (name.includes('/') && nanos % 1_000_000_000n !== 0n)
        found.invalid(path, amount, 'must be an integer')
    }
  }
}

const namespaceFinalizers = 'spec.finalizers'

/** Finalizers in a namespace's spec have their own name format. */
export const checkNamespace: Check = (object, _old, found) => {
  for (const finalizer of textsOf(specOf(object), 'finalizers')) {
    for (const words of finalizerNameErrors(finalizer)) found.invalid(namespaceFinalizers, finalizer, words)
  }
}

export const checkRuntimeClass: Check = (object, _old, found) => {
  const handler: unknown = object['handler']
  if (typeof handler !== 'string' || handler === '') found.required('handler')
  else for (const words of dnsLabelErrors(handler)) found.invalid('handler', handler, words)
  const scheduling = object['scheduling'] as Loose | undefined
  found.errors.push(...labelErrors(scheduling?.['nodeSelector'], 'scheduling.nodeSelector'))
  checkTolerations(listOf(scheduling, 'tolerations'), 'scheduling.tolerations', found)
  const overhead = object['overhead'] as Loose | undefined
  for (const [name, amount] of Object.entries((overhead?.['podFixed'] ?? {}) as Loose)) {
    if ((quantityNanos(String(amount)) ?? 0n) < 0n) {
      found.invalid(`overhead.podFixed[${name}]`, amount, 'must be greater than or equal to 0')
    }
  }
}

const portRange = 'must be between 1 and 65535, inclusive'

export const checkService: Check = (object, old, found) => {
  const spec = specOf(object)
  if (spec === undefined) return
  const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
  found.oneOf('spec.type', spec['type'], types)
  found.oneOf('spec.sessionAffinity', spec['sessionAffinity'], ['ClientIP', 'None'])
  checkServiceFields(spec, found)
  found.errors.push(...labelErrors(spec['selector'], 'spec.selector'))
  found.oneOf('spec.internalTrafficPolicy', spec['internalTrafficPolicy'], ['Cluster', 'Local'])
  const ports = listOf(spec, 'ports')
  if (ports.length === 0 && spec['type'] !== 'ExternalName' && spec['clusterIP'] !== 'None')
    found.required('spec.ports')
  if (spec['type'] === 'ExternalName' && !spec['externalName']) found.required('spec.externalName')
  checkServicePorts(ports, spec['type'], found)
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

function checkServicePorts(ports: readonly Loose[], type: unknown, found: Findings): void {
  const names = new Set<unknown>()
  const numbers = new Set<string>()
  for (const [index, each] of ports.entries()) {
    const { name, port, protocol } = each
    const at = `spec.ports[${index}]`
    if (ports.length > 1 && !name) found.required(`${at}.name`)
    if (typeof name === 'string' && name !== '') {
      const words = dnsLabelErrors(name)
      for (const detail of words) found.invalid(`${at}.name`, name, detail)
      if (words.length === 0 && names.has(name)) found.duplicate(`${at}.name`, name)
    }
    names.add(name)
    checkServicePort(each, type, at, found)
    const identity = `${port}/${protocol ?? 'TCP'}`
    if (numbers.has(identity)) found.duplicate(at, { port, protocol })
    numbers.add(identity)
  }
}

function checkServicePort(each: Loose, type: unknown, at: string, found: Findings): void {
  const { port, protocol, targetPort, nodePort, appProtocol } = each
  if (typeof port === 'number' && (port < 1 || port > 65_535)) found.invalid(`${at}.port`, port, portRange)
  if (typeof appProtocol === 'string') {
    for (const words of qualifiedNameErrors(appProtocol))
      found.invalid(`${at}.appProtocol`, appProtocol, words)
  }
  if (targetPort !== undefined) checkPortOrName(targetPort, `${at}.targetPort`, found)
  if (nodePort && type === 'ClusterIP') {
    found.forbidden(`${at}.nodePort`, "may not be used when `type` is 'ClusterIP'")
  }
  if (typeof nodePort === 'number' && nodePort !== 0 && (nodePort < 30_000 || nodePort > 32_767)) {
    const words = 'provided port is not in the valid range. The range of valid ports is 30000-32767'
    found.invalid(`${at}.nodePort`, nodePort, words)
  }
  found.oneOf(`${at}.protocol`, protocol, ['SCTP', 'TCP', 'UDP'])
}

const maxDataBytes = 1_048_576
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
      checkKey(key, `${field}[${key}]`, found)
      size += typeof value === 'string' ? value.length : 0
    }
  }
  if (size > maxDataBytes) found.tooLong(fields[0] ?? '', maxDataBytes)
  if (old?.['immutable'] !== true) return
  if (object['immutable'] !== true) found.forbidden('immutable', 'field is immutable when `immutable` is set')
  for (const field of fields) {
    if (!jsonEqual(ownValue(object, field), ownValue(old, field)))
      found.forbidden(field, 'field is immutable when `immutable` is set')
  }
}

export const checkConfigMap: Check = (object, old, found) => {
  checkData(object, old, ['data', 'binaryData'], found)
  checkBase64(object, 'binaryData', found)
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Values must be base64; otherwise the object cannot be decoded. */
function checkBase64(object: StoredObject, field: string, found: Findings): void {
  const data: unknown = ownValue(object, field)
  for (const [key, value] of Object.entries(isRecord(data) ? data : {})) {
    if (typeof value !== 'string' || base64.test(value.replace(/\s/g, ''))) continue
    const detail = 'illegal base64 data'
    found.errors.push({ kind: 'typeInvalid', field: `${field}[${key}]`, value: '<redacted>', detail })
  }
}

/** Required keys of Secret types; for the last one, one of the two is enough. */
const secretKeys: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
}

function checkSecretKeys(secret: StoredObject, found: Findings): void {
  const type = String(secret['type'] ?? '')
  const data = isRecord(secret['data']) ? secret['data'] : {}
  for (const key of ownValue(secretKeys, type) ?? []) {
    if (!Object.hasOwn(data, key)) found.required(`data[${key}]`)
  }
  const either = ['username', 'password']
  if (type === 'kubernetes.io/basic-auth' && !either.some((key) => Object.hasOwn(data, key))) {
    for (const key of either) found.required(`data[${key}]`)
  }
  if (type !== 'kubernetes.io/service-account-token') return
  if (!secret.metadata.annotations?.['kubernetes.io/service-account.name']) {
    found.required('metadata.annotations[kubernetes.io/service-account.name]')
  }
}

export const checkSecret: Check = (object, old, found) => {
  checkData(object, old, ['data'], found)
  checkBase64(object, 'data', found)
  if (old === undefined) checkSecretKeys(object, found)
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
  checkAtMostAll(minAvailable, 'spec.minAvailable', found)
  checkAtMostAll(maxUnavailable, 'spec.maxUnavailable', found)
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
    // A claim may get its class later.
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

/** Validates a volume's source and node affinity. */
function checkVolumePlace(spec: Loose, found: Findings): void {
  const given = volumeSources.filter((source) => ownValue(spec, source) !== undefined)
  for (const source of given)
    checkVolumeSource(source, ownValue(spec, source) as Loose, `spec.${source}`, found)
  if (given.length === 0) found.required('spec', 'must specify a volume type')
  for (const extra of given.slice(1))
    found.forbidden(`spec.${extra}`, 'may not specify more than 1 volume type')
  if (spec['hostPath']?.path === '/' && spec['persistentVolumeReclaimPolicy'] === 'Recycle') {
    found.forbidden('spec.persistentVolumeReclaimPolicy', "may not be 'recycle' for a hostPath mount of '/'")
  }
  checkVolumeDriver(spec, found)
  const affinity: Loose | undefined = spec['nodeAffinity']
  if (affinity?.['required'] !== undefined)
    checkNodeTerms(affinity['required'], 'spec.nodeAffinity.required', found)
  else if (affinity !== undefined) {
    found.required('spec.nodeAffinity.required', 'must specify required node constraints')
  } else if (spec['local'] !== undefined) {
    found.required('spec.nodeAffinity', 'Local volume requires node affinity')
  }
  const storageClass: unknown = spec['storageClassName']
  if (typeof storageClass !== 'string' || storageClass === '') return
  for (const words of nameErrors(storageClass, 'subdomain')) {
    found.invalid('spec.storageClassName', storageClass, words)
  }
}

function checkVolumeDriver(spec: Loose, found: Findings): void {
  const driver: Loose | undefined = spec['csi']
  if (driver !== undefined) {
    checkDriverName(driver['driver'], 'spec.csi.driver', found)
    if (!driver['volumeHandle']) found.required('spec.csi.volumeHandle')
  }
  const attributes: unknown = spec['volumeAttributesClassName']
  if (attributes === '') found.required('spec.volumeAttributesClassName', 'an empty string is disallowed')
  else if (attributes !== undefined && driver === undefined) {
    found.required('spec.csi', 'has to be specified when using volumeAttributesClassName')
  }
}

const volumeSources = [
  'awsElasticBlockStore',
  'azureDisk',
  'azureFile',
  'cephfs',
  'cinder',
  'csi',
  'fc',
  'flexVolume',
  'flocker',
  'gcePersistentDisk',
  'glusterfs',
  'hostPath',
  'iscsi',
  'local',
  'nfs',
  'photonPersistentDisk',
  'portworxVolume',
  'quobyte',
  'rbd',
  'scaleIO',
  'storageos',
  'vsphereVolume',
]

export const checkPersistentVolume: Check = (object, _old, found) => {
  const spec = specOf(object)
  if (spec === undefined) return found.required('spec')
  checkAccessModes(spec['accessModes'], 'spec.accessModes', found)
  if (!isRecord(spec['capacity'])) found.required('spec.capacity')
  else if (spec['capacity']['storage'] !== undefined) {
    checkStorage(spec['capacity']['storage'], 'spec.capacity[storage]', found)
  }
  const names = Object.keys(isRecord(spec['capacity']) ? spec['capacity'] : {})
  if (names.length !== 1 || names[0] !== 'storage') {
    found.oneOf('spec.capacity', spec['capacity'] ?? {}, ['storage'])
  }
  found.oneOf('spec.volumeMode', spec['volumeMode'], ['Block', 'Filesystem'])
  checkVolumePlace(spec, found)
  found.oneOf('spec.persistentVolumeReclaimPolicy', spec['persistentVolumeReclaimPolicy'], [
    'Delete',
    'Recycle',
    'Retain',
  ])
}

export const checkStorageClass: Check = (object, old, found) => {
  found.oneOf('reclaimPolicy', object['reclaimPolicy'] || undefined, ['Delete', 'Retain'])
  found.oneOf('volumeBindingMode', object['volumeBindingMode'], ['Immediate', 'WaitForFirstConsumer'])
  const provisioner: unknown = object['provisioner']
  if (typeof provisioner === 'string' && provisioner !== '') {
    for (const words of qualifiedNameErrors(provisioner.toLowerCase()))
      found.invalid('provisioner', provisioner, words)
  }
  if (isRecord(object['parameters']) && Object.hasOwn(object['parameters'], '')) {
    found.invalid('parameters', '', 'field can not be empty.')
  }
  checkTopologies(listOf(object, 'allowedTopologies'), found)
  if (old === undefined) return
  for (const field of ['provisioner', 'parameters', 'reclaimPolicy', 'volumeBindingMode']) {
    if (!jsonEqual(ownValue(object, field), ownValue(old, field)))
      found.forbidden(field, `updates to ${field} are forbidden.`)
  }
}

function checkTopologies(terms: readonly Loose[], found: Findings): void {
  for (const [index, term] of terms.entries()) {
    for (const [position, expression] of listOf(term, 'matchLabelExpressions').entries()) {
      const at = `allowedTopologies[${index}].matchLabelExpressions[${position}]`
      const values = textsOf(expression, 'values')
      if (values.length === 0) found.required(`${at}.values`)
      for (const [place, value] of values.entries()) {
        if (values.indexOf(value) < place) found.duplicate(`${at}.values[${place}]`, value)
      }
      for (const words of qualifiedNameErrors(String(expression['key'] ?? ''))) {
        found.invalid(`${at}.key`, expression['key'], words)
      }
    }
  }
}

export const checkCsiDriver: Check = (object, _old, found) => {
  const spec = specOf(object)
  found.oneOf('spec.fsGroupPolicy', spec?.['fsGroupPolicy'], ['File', 'None', 'ReadWriteOnceWithFSType'])
  for (const mode of textsOf(spec, 'volumeLifecycleModes')) {
    found.oneOf('spec.volumeLifecycleModes', mode, ['Ephemeral', 'Persistent'])
  }
  const requests = listOf(spec, 'tokenRequests')
  for (const [index, { audience, expirationSeconds }] of requests.entries()) {
    const at = `spec.tokenRequests[${index}]`
    if (requests.findIndex((each) => each['audience'] === audience) < index) {
      found.duplicate(`${at}.audience`, audience)
    }
    if (typeof expirationSeconds === 'number' && expirationSeconds < 600) {
      found.invalid(
        `${at}.expirationSeconds`,
        expirationSeconds,
        'may not specify a duration less than 10 minutes',
      )
    }
  }
}

export const checkCsiNode: Check = (object, _old, found) => {
  const drivers = listOf(specOf(object), 'drivers')
  for (const [index, { name, nodeID, topologyKeys, allocatable }] of drivers.entries()) {
    const at = `spec.drivers[${index}]`
    checkDriverName(name, `${at}.name`, found)
    if (!nodeID) found.required(`${at}.nodeID`)
    if (drivers.findIndex((each) => each['name'] === name) < index) found.duplicate(`${at}.name`, name)
    if (typeof allocatable?.count === 'number' && allocatable.count < 0) {
      found.invalid(`${at}.allocatable.count`, allocatable.count, 'must be greater than or equal to 0')
    }
    const keys = Array.isArray(topologyKeys) ? (topologyKeys as readonly unknown[]) : []
    for (const [place, key] of keys.entries()) {
      if (keys.indexOf(key) < place) found.duplicate(at, key)
      for (const words of qualifiedNameErrors(String(key))) found.invalid(at, key, words)
    }
  }
}

const highestUserPriority = 1_000_000_000

const systemClasses: ReadonlySet<string> = new Set(['system-cluster-critical', 'system-node-critical'])

export const checkPriorityClass: Check = (object, old, found) => {
  const value: unknown = object['value']
  const { name } = object.metadata
  const isSystem = name.startsWith('system-')
  if (isSystem && !systemClasses.has(name)) {
    const words = "priority class names with 'system-' prefix are reserved for system use only"
    found.forbidden('metadata.name', words)
  }
  if (typeof value === 'number' && value > highestUserPriority && !isSystem) {
    found.forbidden('value', `maximum allowed value of a user defined priority is ${highestUserPriority}`)
  }
  if (object['preemptionPolicy'] === '') found.required('preemptionPolicy')
  else found.oneOf('preemptionPolicy', object['preemptionPolicy'], ['Never', 'PreemptLowerPriority'])
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
