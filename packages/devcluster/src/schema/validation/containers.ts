import { ownValue } from '@tenon/api'
import type { Loose } from '../columns/cells.ts'
import { isRecord } from '../shape-node.ts'
import { isQuantity, quantityNanos } from '../quantity.ts'
import { dnsLabelErrors, qualifiedNameErrors } from './metadata.ts'
import { type Findings, listOf } from './reporting.ts'

const portName = /^(?=.*[a-z])[a-z0-9]+(?:-[a-z0-9]+)*$/
const environmentName = /^[^=\0]+$/

/** Checks the containers of one list; `known` names are taken by other lists of the pod. */
export function checkContainers(
  containers: readonly Loose[],
  path: string,
  volumes: ReadonlySet<string>,
  known: Set<string>,
  found: Findings,
): void {
  for (const [index, container] of containers.entries()) {
    const at = `${path}[${index}]`
    const name: unknown = container['name']
    if (typeof name === 'string' && name !== '') {
      for (const words of dnsLabelErrors(name)) found.invalid(`${at}.name`, name, words)
      if (known.has(name)) found.duplicate(`${at}.name`, name)
      known.add(name)
    }
    checkContainer(container, at, volumes, found)
  }
}

function checkContainer(container: Loose, at: string, volumes: ReadonlySet<string>, found: Findings): void {
  const image: unknown = container['image']
  if (image === undefined || image === '') found.required(`${at}.image`)
  else if (typeof image === 'string' && image !== image.trim()) {
    found.invalid(`${at}.image`, image, 'must not have leading or trailing whitespace')
  }
  found.oneOf(`${at}.imagePullPolicy`, container['imagePullPolicy'], ['Always', 'IfNotPresent', 'Never'])
  found.oneOf(`${at}.terminationMessagePolicy`, container['terminationMessagePolicy'], [
    'File',
    'FallbackToLogsOnError',
  ])
  checkPorts(listOf(container, 'ports'), `${at}.ports`, found)
  checkEnvironment(listOf(container, 'env'), `${at}.env`, found)
  checkMounts(listOf(container, 'volumeMounts'), `${at}.volumeMounts`, volumes, found)
  checkResources(container['resources'], `${at}.resources`, found)
  for (const probe of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    checkProbe(ownValue(container, probe), `${at}.${probe}`, found)
  }
}

const portRange = 'must be between 1 and 65535, inclusive'

function isPort(value: unknown): boolean {
  return typeof value === 'number' && value >= 1 && value <= 65_535
}

function checkPorts(ports: readonly Loose[], path: string, found: Findings): void {
  const names = new Set<unknown>()
  for (const [index, port] of ports.entries()) {
    const at = `${path}[${index}]`
    const { name, containerPort, hostPort, protocol } = port
    if (typeof name === 'string' && name !== '') {
      if (name.length > 15) found.invalid(`${at}.name`, name, 'must be no more than 15 characters')
      if (!portName.test(name)) {
        found.invalid(
          `${at}.name`,
          name,
          'must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-) and at least one letter (a-z)',
        )
      }
      if (names.has(name)) found.duplicate(`${at}.name`, name)
      names.add(name)
    }
    if (containerPort !== undefined && !isPort(containerPort))
      found.invalid(`${at}.containerPort`, containerPort, portRange)
    if (hostPort !== undefined && hostPort !== 0 && !isPort(hostPort))
      found.invalid(`${at}.hostPort`, hostPort, portRange)
    found.oneOf(`${at}.protocol`, protocol, ['SCTP', 'TCP', 'UDP'])
  }
}

function checkEnvironment(variables: readonly Loose[], path: string, found: Findings): void {
  for (const [index, { name, value, valueFrom }] of variables.entries()) {
    const at = `${path}[${index}]`
    if (typeof name === 'string' && name !== '' && !environmentName.test(name)) {
      found.invalid(`${at}.name`, name, "a valid environment variable name must not contain '='")
    }
    if (!isRecord(valueFrom)) continue
    if (value !== undefined && value !== '') {
      found.invalid(`${at}.valueFrom`, '', 'may not be specified when `value` is not empty')
    }
    const sources = Object.keys(valueFrom).length
    if (sources === 0)
      found.invalid(
        `${at}.valueFrom`,
        '',
        'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`',
      )
    else if (sources > 1)
      found.invalid(`${at}.valueFrom`, '', 'may not have more than one field specified at a time')
  }
}

function checkMounts(
  mounts: readonly Loose[],
  path: string,
  volumes: ReadonlySet<string>,
  found: Findings,
): void {
  const paths = new Set<unknown>()
  for (const [index, { name, mountPath }] of mounts.entries()) {
    const at = `${path}[${index}]`
    if (typeof name === 'string' && name !== '' && !volumes.has(name)) found.notFound(`${at}.name`, name)
    if (mountPath === undefined || mountPath === '') continue
    if (paths.has(mountPath)) found.invalid(`${at}.mountPath`, mountPath, 'must be unique')
    paths.add(mountPath)
  }
}

/** Names of resources a container may ask for without a domain. */
const standardResources = new Set(['cpu', 'memory', 'ephemeral-storage'])

/** Checks requests and limits of a container or a pod. */
export function checkResources(resources: Loose | undefined, path: string, found: Findings): void {
  if (resources === undefined) return
  const { requests = {}, limits = {} } = resources
  for (const [list, at] of [
    [limits, `${path}.limits`],
    [requests, `${path}.requests`],
  ] as const) {
    for (const [name, value] of Object.entries(list)) checkAmount(name, value, at, found)
  }
  for (const [name, request] of Object.entries(requests)) {
    const limit: unknown = limits[name]
    const asked = typeof request === 'string' ? quantityNanos(request) : undefined
    const allowed = typeof limit === 'string' ? quantityNanos(limit) : undefined
    const extended = !standardResources.has(name)
    if (asked !== undefined && allowed !== undefined && asked > allowed) {
      found.invalid(
        `${path}.requests`,
        request,
        `must be less than or equal to ${name} limit of ${String(limit)}`,
      )
    } else if (
      extended &&
      asked !== undefined &&
      allowed !== undefined &&
      asked !== allowed &&
      overcommitsNever(name)
    ) {
      found.invalid(`${path}.requests`, request, `must be equal to ${name} limit of ${String(limit)}`)
    } else if (extended && limit === undefined && overcommitsNever(name)) {
      found.required(`${path}.limits`, 'Limit must be set for non overcommitable resources')
    }
  }
}

function overcommitsNever(name: string): boolean {
  return name.startsWith('hugepages-') || (name.includes('/') && !name.includes('kubernetes.io/'))
}

function checkAmount(name: string, value: unknown, path: string, found: Findings): void {
  const at = `${path}[${name}]`
  const extended = name.includes('/')
  if (extended) for (const words of qualifiedNameErrors(name)) found.invalid(at, name, words)
  else if (!standardResources.has(name) && !name.startsWith('hugepages-')) {
    found.invalid(at, name, 'must be a standard resource for containers')
  }
  if (typeof value !== 'string' || !isQuantity(value)) return
  const nanos = quantityNanos(value) ?? 0n
  if (nanos < 0n) found.invalid(at, value, 'must be greater than or equal to 0')
  if (extended && nanos % 1_000_000_000n !== 0n) found.invalid(at, value, 'must be an integer')
}

const probeHandlers = ['exec', 'httpGet', 'tcpSocket', 'grpc']

function checkProbe(probe: Loose | undefined, path: string, found: Findings): void {
  if (probe === undefined) return
  const handlers = probeHandlers.filter((handler) => ownValue(probe, handler) !== undefined)
  if (handlers.length === 0) found.required(path, 'must specify a handler type')
  for (const extra of handlers.slice(1))
    found.forbidden(`${path}.${extra}`, 'may not specify more than 1 handler type')
  for (const field of [
    'initialDelaySeconds',
    'timeoutSeconds',
    'periodSeconds',
    'successThreshold',
    'failureThreshold',
  ]) {
    found.notNegative(`${path}.${field}`, ownValue(probe, field))
  }
  if (
    !path.endsWith('readinessProbe') &&
    typeof probe['successThreshold'] === 'number' &&
    probe['successThreshold'] > 1
  ) {
    found.invalid(`${path}.successThreshold`, probe['successThreshold'], 'must be 1')
  }
}
