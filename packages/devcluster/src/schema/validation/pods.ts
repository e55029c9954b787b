import { ownValue } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'
import { jsonEqual } from '../shape-node.ts'
import { checkContainers, checkResources } from './containers.ts'
import { dnsLabelErrors, labelErrors, nameErrors, qualifiedNameErrors } from './metadata.ts'
import { type Findings, listOf } from './reporting.ts'
import { checkAffinity, checkNodeSelector, checkTolerations, checkTopologySpread } from './scheduling.ts'

/** Checks a pod spec, in a pod or in a template. */
function checkPodSpec(spec: Loose, path: string, found: Findings): void {
  const volumes = checkVolumes(listOf(spec, 'volumes'), `${path}.volumes`, found)
  const names = new Set<string>()
  if (Array.isArray(spec['containers']) && spec['containers'].length === 0)
    found.required(`${path}.containers`)
  checkContainers(listOf(spec, 'containers'), `${path}.containers`, volumes, names, found)
  checkInitContainers(spec, path, volumes, names, found)
  checkContainers(listOf(spec, 'ephemeralContainers'), `${path}.ephemeralContainers`, volumes, names, found)
  checkHostPorts(spec, path, found)
  checkResources(spec['resources'], `${path}.resources`, found)
  found.oneOf(`${path}.restartPolicy`, spec['restartPolicy'], ['Always', 'OnFailure', 'Never'])
  found.oneOf(`${path}.dnsPolicy`, spec['dnsPolicy'], [
    'ClusterFirstWithHostNet',
    'ClusterFirst',
    'Default',
    'None',
  ])
  found.oneOf(`${path}.preemptionPolicy`, spec['preemptionPolicy'], ['Never', 'PreemptLowerPriority'])
  found.notNegative(`${path}.terminationGracePeriodSeconds`, spec['terminationGracePeriodSeconds'])
  const deadline: unknown = spec['activeDeadlineSeconds']
  if (typeof deadline === 'number' && (deadline < 1 || deadline > 2_147_483_647)) {
    found.invalid(`${path}.activeDeadlineSeconds`, deadline, 'must be between 1 and 2147483647, inclusive')
  }
  checkNames(spec, path, found)
  checkNodeSelector(spec['nodeSelector'], `${path}.nodeSelector`, found)
  checkAffinity(spec['affinity'], `${path}.affinity`, found)
  checkTolerations(listOf(spec, 'tolerations'), `${path}.tolerations`, found)
  checkTopologySpread(listOf(spec, 'topologySpreadConstraints'), `${path}.topologySpreadConstraints`, found)
  checkGates(listOf(spec, 'schedulingGates'), `${path}.schedulingGates`, found)
}

function checkInitContainers(
  spec: Loose,
  path: string,
  volumes: ReadonlySet<string>,
  names: Set<string>,
  found: Findings,
): void {
  const containers = listOf(spec, 'initContainers')
  checkContainers(containers, `${path}.initContainers`, volumes, names, found)
  for (const [index, container] of containers.entries()) {
    const at = `${path}.initContainers[${index}]`
    const isSidecar = container['restartPolicy'] === 'Always'
    for (const field of ['livenessProbe', 'readinessProbe', 'startupProbe', 'lifecycle']) {
      if (!isSidecar && ownValue(container, field) !== undefined) {
        found.forbidden(`${at}.${field}`, 'may not be set for init containers without restartPolicy=Always')
      }
    }
  }
}

/** Two containers of a pod cannot take the same port of the host. */
function checkHostPorts(spec: Loose, path: string, found: Findings): void {
  const taken = new Set<string>()
  for (const [index, container] of listOf(spec, 'containers').entries()) {
    for (const [position, port] of listOf(container, 'ports').entries()) {
      if (port['hostPort'] === undefined || port['hostPort'] === 0) continue
      const identity = `${port['protocol'] ?? 'TCP'}/${port['hostIP'] ?? ''}/${port['hostPort']}`
      if (taken.has(identity)) {
        found.duplicate(`${path}.containers[${index}].ports[${position}].hostPort`, identity)
      }
      taken.add(identity)
    }
  }
}

function checkNames(spec: Loose, path: string, found: Findings): void {
  for (const field of ['nodeName', 'serviceAccountName', 'priorityClassName']) {
    const name: unknown = ownValue(spec, field)
    if (typeof name !== 'string' || name === '') continue
    for (const words of nameErrors(name, 'subdomain')) found.invalid(`${path}.${field}`, name, words)
  }
  for (const field of ['hostname', 'subdomain']) {
    const name: unknown = ownValue(spec, field)
    if (typeof name !== 'string' || name === '') continue
    for (const words of dnsLabelErrors(name)) found.invalid(`${path}.${field}`, name, words)
  }
}

function checkGates(gates: readonly Loose[], path: string, found: Findings): void {
  const seen = new Set<unknown>()
  for (const [index, { name }] of gates.entries()) {
    if (typeof name !== 'string') continue
    for (const words of qualifiedNameErrors(name)) found.invalid(`${path}[${index}].name`, name, words)
    if (seen.has(name)) found.duplicate(`${path}[${index}].name`, name)
    seen.add(name)
  }
}

function checkVolumes(volumes: readonly Loose[], path: string, found: Findings): ReadonlySet<string> {
  const names = new Set<string>()
  for (const [index, volume] of volumes.entries()) {
    const at = `${path}[${index}]`
    const name: unknown = volume['name']
    if (typeof name === 'string' && name !== '') {
      for (const words of dnsLabelErrors(name)) found.invalid(`${at}.name`, name, words)
      if (names.has(name)) found.duplicate(`${at}.name`, name)
      names.add(name)
    }
    const sources = Object.keys(volume).filter((key) => key !== 'name')
    for (const extra of sources.slice(1))
      found.forbidden(`${at}.${extra}`, 'may not specify more than 1 volume type')
  }
  return names
}

/** Checks the template of a workload. */
export function checkTemplate(template: Loose | undefined, path: string, found: Findings): void {
  if (template === undefined) return
  found.errors.push(...labelErrors(template['metadata']?.labels, `${path}.labels`))
  const spec: Loose | undefined = template['spec']
  if (spec !== undefined) checkPodSpec(spec, `${path}.spec`, found)
}

const podChanges =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,' +
  '`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),' +
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'

export function checkPod(pod: StoredObject, old: StoredObject | undefined, found: Findings): void {
  const spec = pod['spec'] as Loose | undefined
  if (spec === undefined) return found.required('spec.containers')
  const before = old?.['spec'] as Loose | undefined
  if (before === undefined) {
    checkPodSpec(spec, 'spec', found)
    return
  }
  checkPodSpec(spec, 'spec', found)
  checkTolerationsOnlyGrow(spec, before, found)
  checkGatesOnlyShrink(spec, before, found)
  if (!jsonEqual(withoutMutable(spec, before), withoutMutable(before, before)))
    found.forbidden('spec', podChanges)
}

/** The parts of a pod spec that no update may change. */
function withoutMutable(spec: Loose, before: Loose): Loose {
  const gated = listOf(before, 'schedulingGates').length > 0
  const {
    activeDeadlineSeconds: _deadline,
    tolerations: _tolerations,
    schedulingGates: _gates,
    ephemeralContainers: _ephemeral,
    ...fixed
  } = spec
  return {
    ...fixed,
    containers: listOf(spec, 'containers').map(withoutImage),
    initContainers: listOf(spec, 'initContainers').map(withoutImage),
    // A pod is bound to a node once.
    nodeName: before['nodeName'] === undefined || before['nodeName'] === '' ? undefined : spec['nodeName'],
    // A pod that is held back may still be directed elsewhere.
    ...(gated ? { nodeSelector: undefined, affinity: undefined } : {}),
    ...(before['terminationGracePeriodSeconds'] < 0 ? { terminationGracePeriodSeconds: undefined } : {}),
  }
}

function withoutImage(container: Loose): Loose {
  const { image: _image, ...rest } = container
  return rest
}

function checkTolerationsOnlyGrow(spec: Loose, before: Loose, found: Findings): void {
  const now = listOf(spec, 'tolerations')
  const timeless = ({ tolerationSeconds: _seconds, ...rest }: Loose): Loose => rest
  const kept = listOf(before, 'tolerations').every((old) =>
    now.some((one) => jsonEqual(one, old) || jsonEqual(timeless(one), timeless(old))),
  )
  if (!kept)
    found.forbidden(
      'spec.tolerations',
      'existing toleration can not be modified except its tolerationSeconds',
    )
}

function checkGatesOnlyShrink(spec: Loose, before: Loose, found: Findings): void {
  const known = new Set(listOf(before, 'schedulingGates').map((gate) => gate['name']))
  for (const [index, gate] of listOf(spec, 'schedulingGates').entries()) {
    if (!known.has(gate['name'])) {
      found.forbidden(
        'spec.schedulingGates',
        `only deletion is allowed, but found new scheduling gate '${gate['name']}' at ${index}`,
      )
    }
  }
}
