import { isIP } from 'node:net'
import { ownValue, quantityNanos } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'
import { containerAmounts } from '../defaults/pod-resources.ts'
import { jsonEqual } from '../shape-node.ts'
import { checkContainers, checkId, checkProfile, checkResources, type PodContext } from './containers.ts'
import { dnsLabelErrors, labelErrors, nameErrors, qualifiedNameErrors } from './metadata.ts'
import { checkProfileAnnotations } from './profile-annotations.ts'
import { type Findings, listOf, textsOf } from './reporting.ts'
import { checkAffinity, checkNodeSelector, checkTolerations, checkTopologySpread } from './scheduling.ts'
import { checkVolumes } from './volumes.ts'

/** Checks a pod spec, in a pod or in a template. */
function checkPodSpec(spec: Loose, path: string, found: Findings): void {
  const volumes = checkVolumes(listOf(spec, 'volumes'), `${path}.volumes`, found)
  const grace: unknown = spec['terminationGracePeriodSeconds']
  const context = {
    volumes,
    known: new Set<string>(),
    graceSeconds: typeof grace === 'number' ? grace : 0,
    neverRestarts: spec['restartPolicy'] === 'Never',
    isOfHost: spec['hostUsers'] !== false,
    claims: new Set<unknown>(listOf(spec, 'resourceClaims').map(({ name }) => name)),
  }
  if (listOf(spec, 'containers').length === 0) found.required(`${path}.containers`)
  checkContainers(listOf(spec, 'containers'), `${path}.containers`, context, found)
  checkInitContainers(spec, path, context, found)
  checkContainers(listOf(spec, 'ephemeralContainers'), `${path}.ephemeralContainers`, context, found)
  checkHostPorts(spec, path, found)
  checkPodResources(spec, `${path}.resources`, found)
  found.oneOf(`${path}.restartPolicy`, spec['restartPolicy'], ['Always', 'OnFailure', 'Never'])
  checkDns(spec, path, found)
  found.oneOf(`${path}.preemptionPolicy`, spec['preemptionPolicy'], ['Never', 'PreemptLowerPriority'])
  const deadline: unknown = spec['activeDeadlineSeconds']
  if (typeof deadline === 'number' && (deadline < 1 || deadline > 2_147_483_647)) {
    found.invalid(`${path}.activeDeadlineSeconds`, deadline, 'must be between 1 and 2147483647, inclusive')
  }
  checkNames(spec, path, found)
  checkPodSecurity(spec, path, found)
  checkHostProcesses(spec, path, found)
  checkHostUsers(spec, path, found)
  checkNodeSelector(spec['nodeSelector'], `${path}.nodeSelector`, found)
  checkAffinity(spec['affinity'], `${path}.affinity`, found)
  checkTolerations(listOf(spec, 'tolerations'), `${path}.tolerations`, found)
  checkTopologySpread(listOf(spec, 'topologySpreadConstraints'), `${path}.topologySpreadConstraints`, found)
  checkGates(listOf(spec, 'schedulingGates'), `${path}.schedulingGates`, found)
  for (const [index, { conditionType }] of listOf(spec, 'readinessGates').entries()) {
    for (const words of qualifiedNameErrors(String(conditionType ?? '')))
      found.invalid(`${path}.readinessGates[${index}].conditionType`, conditionType, words)
  }
  checkHostAliases(listOf(spec, 'hostAliases'), `${path}.hostAliases`, found)
  checkOs(spec, path, found)
  checkResourceClaims(listOf(spec, 'resourceClaims'), `${path}.resourceClaims`, found)
}

function checkResourceClaims(claims: readonly Loose[], path: string, found: Findings): void {
  for (const [index, { name, resourceClaimName, resourceClaimTemplateName }] of claims.entries()) {
    const at = `${path}[${index}]`
    if (name === undefined || name === '') found.required(`${at}.name`)
    const given = [resourceClaimName, resourceClaimTemplateName].filter((each) => each !== undefined)
    if (given.length !== 1) {
      found.invalid(
        at,
        claims[index],
        'must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`',
      )
    }
  }
}

/** A pod with an OS must not have fields of another one. */
function checkOs(spec: Loose, path: string, found: Findings): void {
  const os: Loose | undefined = spec['os']
  if (os === undefined) return
  if (os['name'] === undefined || os['name'] === '') return found.required(`${path}.os.name`)
  found.oneOf(`${path}.os`, os['name'], ['linux', 'windows'])
  const security: Loose = spec['securityContext'] ?? {}
  const containers = ['containers', 'initContainers', 'ephemeralContainers'].flatMap((list) =>
    listOf(spec, list).map((container, index): readonly [string, Loose] => [
      `${path}.${list}[${index}].securityContext`,
      container['securityContext'] ?? {},
    ]),
  )
  const contexts = [[`${path}.securityContext`, security] as const, ...containers]
  if (os['name'] === 'linux') {
    for (const [at, { windowsOptions }] of contexts) {
      if (windowsOptions !== undefined)
        found.forbidden(`${at}.windowsOptions`, 'windows options cannot be set for a linux pod')
    }
  }
  if (os['name'] !== 'windows') return
  for (const field of ['hostPID', 'hostIPC', 'hostUsers', 'shareProcessNamespace']) {
    if (ownValue(spec, field) !== undefined) found.forbidden(`${path}.${field}`, notOnWindows)
  }
  for (const [at, context] of contexts) {
    for (const field of Object.keys(context)) {
      if (!windowsSecurity.has(field)) found.forbidden(`${at}.${field}`, notOnWindows)
    }
  }
}

const notOnWindows = 'cannot be set for a windows pod'
const windowsSecurity: ReadonlySet<string> = new Set(['windowsOptions', 'runAsNonRoot'])

const policies = ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None']

function checkDns(spec: Loose, path: string, found: Findings): void {
  const config: Loose | undefined = spec['dnsConfig']
  found.oneOf(`${path}.dnsPolicy`, spec['dnsPolicy'], policies)
  const servers = textsOf(config, 'nameservers')
  if (spec['dnsPolicy'] === 'None') {
    if (config === undefined) {
      return found.required(`${path}.dnsConfig`, 'must provide `dnsConfig` when `dnsPolicy` is None')
    }
    if (servers.length === 0) {
      const words = 'must provide at least one DNS nameserver when `dnsPolicy` is None'
      return found.required(`${path}.dnsConfig.nameservers`, words)
    }
  }
  if (config === undefined) return
  if (servers.length > 3) {
    found.invalid(`${path}.dnsConfig.nameservers`, servers, 'must not have more than 3 nameservers')
  }
  for (const [index, server] of servers.entries()) {
    if (isIP(server) === 0) found.invalid(`${path}.dnsConfig.nameservers[${index}]`, server, addressWords)
  }
  for (const [index, domain] of textsOf(config, 'searches').entries()) {
    if (domain === '.') continue
    const bare = domain.endsWith('.') ? domain.slice(0, -1) : domain
    for (const words of searchErrors(bare))
      found.invalid(`${path}.dnsConfig.searches[${index}]`, domain, words)
  }
  for (const [index, { name }] of listOf(config, 'options').entries()) {
    if (name === undefined || name === '')
      found.required(`${path}.dnsConfig.options[${index}]`, 'must not be empty')
  }
}

/** Search domains may contain underscores. */
function searchErrors(domain: string): readonly string[] {
  return nameErrors(domain.replaceAll('_', '-'), 'subdomain')
}

const addressWords = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'

function checkHostAliases(aliases: readonly Loose[], path: string, found: Findings): void {
  for (const [index, alias] of aliases.entries()) {
    const { ip } = alias
    if (typeof ip === 'string' && isIP(ip) === 0) found.invalid(`${path}[${index}].ip`, ip, addressWords)
    for (const [place, name] of textsOf(alias, 'hostnames').entries()) {
      const at = `${path}[${index}].hostnames[${place}]`
      for (const words of nameErrors(name, 'subdomain')) found.invalid(at, name, words)
    }
  }
}

const sysctlName = /^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$/

function checkPodSecurity(spec: Loose, path: string, found: Findings): void {
  if (spec['shareProcessNamespace'] === true && spec['hostPID'] === true) {
    const words = 'ShareProcessNamespace and HostPID cannot both be enabled'
    found.invalid(`${path}.securityContext.shareProcessNamespace`, true, words)
  }
  const context: Loose | undefined = spec['securityContext']
  if (context === undefined) return
  const at = `${path}.securityContext`
  for (const field of ['fsGroup', 'runAsUser', 'runAsGroup'])
    checkId(ownValue(context, field), `${at}.${field}`, found)
  const groups: unknown = context['supplementalGroups']
  for (const [index, group] of (Array.isArray(groups) ? groups : []).entries()) {
    checkId(group, `${at}.supplementalGroups[${index}]`, found)
  }
  found.oneOf(`${at}.fsGroupChangePolicy`, context['fsGroupChangePolicy'], ['Always', 'OnRootMismatch'])
  found.oneOf(`${at}.supplementalGroupsPolicy`, context['supplementalGroupsPolicy'], ['Merge', 'Strict'])
  checkProfile(context['seccompProfile'], `${at}.seccompProfile`, 'seccomp', found)
  checkProfile(context['appArmorProfile'], `${at}.appArmorProfile`, 'AppArmor', found)
  const names = new Set<unknown>()
  for (const [index, { name }] of listOf(context, 'sysctls').entries()) {
    const place = `${at}.sysctls[${index}].name`
    if (name === undefined || name === '') found.required(place)
    else if (names.has(name)) found.duplicate(place, name)
    else if (typeof name === 'string') {
      if (!sysctlName.test(name))
        found.invalid(place, name, 'must have at most 253 characters and match regex')
      if (spec['hostNetwork'] === true && name.startsWith('net.')) {
        found.invalid(place, name, "may not be specified when 'hostNetwork' is true")
      }
      if (spec['hostIPC'] === true && /^(kernel\.(shm|msg|sem)|fs\.mqueue\.)/.test(name)) {
        found.invalid(place, name, "may not be specified when 'hostIPC' is true")
      }
    }
    names.add(name)
  }
}

/** On Windows, containers are either all processes of the host or none is. */
function checkHostProcesses(spec: Loose, path: string, found: Findings): void {
  const valueOf = (one: Loose): unknown => one['securityContext']?.windowsOptions?.hostProcess
  const ofPod = valueOf(spec)
  const values: unknown[] = []
  for (const list of ['initContainers', 'containers', 'ephemeralContainers']) {
    for (const [index, container] of listOf(spec, list).entries()) {
      const own = valueOf(container)
      values.push(own ?? ofPod)
      if (own === undefined || ofPod === undefined || own === ofPod) continue
      const words = `pod hostProcess value must be identical if both are specified, was ${String(ofPod)}`
      found.invalid(`${path}.${list}[${index}].securityContext.windowsOptions.hostProcess`, own, words)
    }
  }
  if (!values.includes(true)) return
  if (values.some((value) => value !== true)) {
    const words =
      'If pod contains any hostProcess containers then all containers must be HostProcess containers'
    found.invalid(path, '', words)
  }
  if (spec['hostNetwork'] !== true) {
    const words = 'hostNetwork must be true if pod contains any hostProcess containers'
    found.invalid(`${path}.hostNetwork`, false, words)
  }
}

function checkHostUsers(spec: Loose, path: string, found: Findings): void {
  if (spec['hostUsers'] !== false) return
  for (const [field, name] of [
    ['hostNetwork', 'hostNetwork'],
    ['hostPID', 'HostPID'],
    ['hostIPC', 'HostIPC'],
  ] as const) {
    if (ownValue(spec, field) === true) found.forbidden(`${path}.${name}`, 'when `hostUsers` is false')
  }
}

/** Pod-level requests and limits: CPU, memory and huge pages, not less than those of its containers. */
function checkPodResources(spec: Loose, path: string, found: Findings): void {
  const resources: Loose | undefined = spec['resources']
  if (resources === undefined) return
  checkResources(resources, path, found)
  for (const list of ['limits', 'requests'] as const) {
    for (const name of Object.keys(resources[list] ?? {})) {
      if (name === 'cpu' || name === 'memory' || name.startsWith('hugepages-')) continue
      found.oneOf(`${path}.${list}[${name}]`, name, ['cpu', 'hugepages-', 'memory'])
    }
  }
  const asked = containerAmounts(spec, 'requests')
  for (const [name, amount] of Object.entries((resources['requests'] ?? {}) as Record<string, unknown>)) {
    const [own, together] = [quantityNanos(String(amount)), quantityNanos(ownValue(asked, name) ?? '0')]
    if (own === undefined || together === undefined || own >= together) continue
    const words = `must be greater than or equal to aggregate container requests of ${ownValue(asked, name)}`
    found.invalid(`${path}.requests[${name}]`, amount, words)
  }
}

function checkInitContainers(spec: Loose, path: string, context: PodContext, found: Findings): void {
  const containers = listOf(spec, 'initContainers')
  checkContainers(containers, `${path}.initContainers`, context, found)
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

/** Two containers of a pod cannot use the same host port. */
function checkHostPorts(spec: Loose, path: string, found: Findings): void {
  const taken = new Set<string>()
  for (const [index, container] of listOf(spec, 'containers').entries()) {
    for (const [position, port] of listOf(container, 'ports').entries()) {
      if (spec['hostNetwork'] === true && port['hostPort'] && port['hostPort'] !== port['containerPort']) {
        const at = `${path}.containers[${index}].ports[${position}].hostPort`
        found.invalid(at, port['hostPort'], 'must match `containerPort` when `hostNetwork` is true')
      }
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
  const group: Loose | undefined = spec['schedulingGroup']
  if (group !== undefined) {
    const { podGroupName } = group
    const at = `${path}.schedulingGroup.podGroupName`
    if (typeof podGroupName !== 'string') found.invalid(at, null, 'must specify one of: `podGroupName`')
    else for (const words of nameErrors(podGroupName, 'subdomain')) found.invalid(at, podGroupName, words)
  }
  const runtimeClass: unknown = spec['runtimeClassName']
  if (typeof runtimeClass === 'string') {
    for (const words of nameErrors(runtimeClass, 'subdomain')) {
      found.invalid(`${path}.runtimeClassName`, runtimeClass, words)
    }
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
    if (seen.has(name)) found.duplicate(`${path}[${index}]`, name)
    seen.add(name)
  }
}

export function checkTemplate(template: Loose | undefined, path: string, found: Findings): void {
  if (template === undefined) return
  found.errors.push(...labelErrors(template['metadata']?.labels, `${path}.labels`))
  const spec: Loose | undefined = template['spec']
  if (spec === undefined) return
  checkPodSpec(spec, `${path}.spec`, found)
  checkProfileAnnotations(template, `${path}.`, found)
  if (listOf(spec, 'ephemeralContainers').length > 0) {
    found.forbidden(`${path}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template')
  }
}

/** Validates a PodTemplate object. */
export function checkPodTemplate(
  object: StoredObject,
  _old: StoredObject | undefined,
  found: Findings,
): void {
  checkTemplate(object['template'] as Loose | undefined, 'template', found)
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
    checkProfileAnnotations(pod, '', found)
    checkImages(spec, found)
    if (listOf(spec, 'ephemeralContainers').length > 0) {
      found.forbidden('spec.ephemeralContainers', 'cannot be set on create')
    }
    if (spec['nodeName'] && listOf(spec, 'schedulingGates').length > 0) {
      found.forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared')
    }
    return
  }
  checkPodSpec(spec, 'spec', found)
  checkTolerationsOnlyGrow(spec, before, found)
  checkGatesOnlyShrink(spec, before, found)
  if (!jsonEqual(withoutMutable(spec, before), withoutMutable(before, before)))
    found.forbidden('spec', podChanges)
}

/** Images are required in pods; Kubernetes accepts templates without them. */
function checkImages(spec: Loose, found: Findings): void {
  for (const list of ['containers', 'initContainers']) {
    for (const [index, { image }] of listOf(spec, list).entries()) {
      if (typeof image !== 'string' || image === image.trim()) continue
      found.invalid(`spec.${list}[${index}].image`, image, 'must not have leading or trailing whitespace')
    }
  }
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
    // A pod is bound once.
    nodeName: before['nodeName'] === undefined || before['nodeName'] === '' ? undefined : spec['nodeName'],
    // Node selection of a pod with scheduling gates may change.
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
