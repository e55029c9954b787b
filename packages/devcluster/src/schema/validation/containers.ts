import { isQuantity, isRecord, ownValue, quantityNanos } from '@tenon/api'
import type { Loose } from '../columns/cells.ts'
import { checkFieldReference, checkResourceReference } from './field-references.ts'
import { dnsLabelErrors, nameErrors, qualifiedNameErrors } from './metadata.ts'
import { type Findings, listOf } from './reporting.ts'
import { checkNoBacksteps } from './volumes.ts'

const environmentName = /^[ -<>-~]+$/
const environmentWords =
  "a valid environment variable name must consist only of printable ASCII characters other than '='"
const dataKey = /^[-._a-zA-Z0-9]+$/
const keyWords =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or " +
  "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

/** What the containers of a pod share. */
export interface PodContext {
  /** Names of its volumes. */
  readonly volumes: ReadonlySet<string>
  /** Names of earlier containers, in all lists. */
  readonly known: Set<string>
  readonly graceSeconds: number
  readonly neverRestarts: boolean
  /** Whether it uses the host's user namespace. */
  readonly isOfHost: boolean
  /** Names of its resource claims. */
  readonly claims: ReadonlySet<unknown>
}

/** Validates the containers of one list. */
export function checkContainers(
  containers: readonly Loose[],
  path: string,
  context: PodContext,
  found: Findings,
): void {
  for (const [index, container] of containers.entries()) {
    const at = `${path}[${index}]`
    const name: unknown = container['name']
    if (typeof name === 'string' && name !== '') {
      for (const words of dnsLabelErrors(name)) found.invalid(`${at}.name`, name, words)
      if (context.known.has(name)) found.duplicate(`${at}.name`, name)
      context.known.add(name)
    }
    checkContainer(container, at, context, found)
  }
}

function checkContainer(
  container: Loose,
  at: string,
  { volumes, graceSeconds, claims, neverRestarts, isOfHost }: PodContext,
  found: Findings,
): void {
  if (!container['image']) found.required(`${at}.image`)
  found.oneOf(`${at}.imagePullPolicy`, container['imagePullPolicy'], ['Always', 'IfNotPresent', 'Never'])
  found.oneOf(`${at}.terminationMessagePolicy`, container['terminationMessagePolicy'], [
    'File',
    'FallbackToLogsOnError',
  ])
  checkPorts(listOf(container, 'ports'), `${at}.ports`, found)
  checkEnvironment(listOf(container, 'env'), `${at}.env`, found)
  checkEnvironmentSources(listOf(container, 'envFrom'), `${at}.envFrom`, found)
  checkMounts(container, `${at}.volumeMounts`, volumes, found)
  checkResources(container['resources'], `${at}.resources`, found)
  // Init containers that are not sidecars may not have probes, whatever these contain.
  const hasProbes = !at.includes('.initContainers[') || container['restartPolicy'] === 'Always'
  for (const probe of hasProbes ? ['livenessProbe', 'readinessProbe', 'startupProbe'] : []) {
    checkProbe(ownValue(container, probe), `${at}.${probe}`, found)
  }
  checkLifecycle(container['lifecycle'], `${at}.lifecycle`, graceSeconds, found)
  checkContainerSecurity(container['securityContext'], `${at}.securityContext`, isOfHost, found)
  checkResizePolicy(listOf(container, 'resizePolicy'), `${at}.resizePolicy`, neverRestarts, found)
  for (const [index, { name }] of listOf(container['resources'], 'claims').entries()) {
    // The message says that the claim does not exist.
    if (name && !claims.has(name)) found.notFound(`${at}.resources.claims[${index}]`, name)
  }
}

function checkResizePolicy(
  policies: readonly Loose[],
  path: string,
  neverRestarts: boolean,
  found: Findings,
): void {
  const seen = new Set<unknown>()
  for (const { resourceName, restartPolicy } of policies) {
    if (seen.has(resourceName)) found.duplicate(path, resourceName)
    seen.add(resourceName)
    if (!restartPolicy) found.required(path)
    else found.oneOf(path, restartPolicy, ['NotRequired', 'RestartContainer'])
    if (neverRestarts && restartPolicy !== 'NotRequired') {
      found.invalid(path, restartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
    }
    if (!resourceName) found.required(path)
    else found.oneOf(path, resourceName, ['cpu', 'memory'])
  }
}

function checkLifecycle(
  lifecycle: Loose | undefined,
  path: string,
  graceSeconds: number,
  found: Findings,
): void {
  for (const moment of ['postStart', 'preStop']) {
    const hook: Loose | undefined = ownValue(lifecycle, moment)
    if (hook === undefined) continue
    checkHandler(hook, `${path}.${moment}`, found)
    const seconds: unknown = hook['sleep']?.seconds
    if (typeof seconds === 'number' && (seconds < 0 || seconds > graceSeconds)) {
      const words = `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`
      found.invalid(`${path}.${moment}.sleep`, seconds, words)
    }
  }
}

const idRange = 'must be between 0 and 2147483647, inclusive'

/** Validates a user or group ID. */
export function checkId(id: unknown, path: string, found: Findings): void {
  if (typeof id === 'number' && (id < 0 || id > 2_147_483_647)) found.invalid(path, id, idRange)
}

function checkContainerSecurity(
  context: Loose | undefined,
  path: string,
  isOfHost: boolean,
  found: Findings,
): void {
  if (context === undefined) return
  checkId(context['runAsUser'], `${path}.runAsUser`, found)
  checkId(context['runAsGroup'], `${path}.runAsGroup`, found)
  found.oneOf(`${path}.procMount`, context['procMount'], ['Default', 'Unmasked'])
  if (isOfHost && context['procMount'] === 'Unmasked') {
    found.invalid(`${path}.procMount`, 'Unmasked', '`hostUsers` must be false to use `Unmasked`')
  }
  checkProfile(context['seccompProfile'], `${path}.seccompProfile`, 'seccomp', found)
  checkProfile(context['appArmorProfile'], `${path}.appArmorProfile`, 'AppArmor', found)
  if (context['allowPrivilegeEscalation'] !== false) return
  if (context['privileged'] === true) {
    found.invalid(path, context, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true')
  }
  const added: unknown = context['capabilities']?.add
  if (Array.isArray(added) && added.includes('CAP_SYS_ADMIN')) {
    const words = 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN'
    found.invalid(path, context, words)
  }
}

/** Validates a seccomp or AppArmor profile of a container or pod. */
export function checkProfile(
  profile: Loose | undefined,
  path: string,
  kind: 'seccomp' | 'AppArmor',
  found: Findings,
): void {
  if (profile === undefined) return
  const { type, localhostProfile } = profile
  if (type === undefined || type === '') {
    found.required(`${path}.type`)
  } else found.oneOf(`${path}.type`, type, ['Localhost', 'RuntimeDefault', 'Unconfined'])
  if (type === 'Localhost') {
    if (!localhostProfile)
      found.required(`${path}.localhostProfile`, `must be set when ${kind} type is Localhost`)
    else if (kind === 'seccomp') {
      if (localhostProfile.startsWith('/'))
        found.invalid(`${path}.localhostProfile`, localhostProfile, 'must be a relative path')
      checkNoBacksteps(localhostProfile, `${path}.localhostProfile`, found)
    }
  } else if (localhostProfile !== undefined) {
    found.invalid(
      `${path}.localhostProfile`,
      localhostProfile,
      `can only be set when ${kind} type is Localhost`,
    )
  }
}

/** Bidirectional mount propagation needs a privileged container. */
function checkPropagation(mount: Loose, container: Loose, path: string, found: Findings): void {
  const { mountPropagation: mode, recursiveReadOnly: recursion, readOnly } = mount
  found.oneOf(`${path}.mountPropagation`, mode, ['Bidirectional', 'HostToContainer', 'None'])
  if (mode === 'Bidirectional' && container['securityContext']?.privileged !== true) {
    const words = 'Bidirectional mount propagation is available only to privileged containers'
    found.forbidden(`${path}.mountPropagation`, words)
  }
  const at = `${path}.recursiveReadOnly`
  found.oneOf(at, recursion, ['Disabled', 'Enabled', 'IfPossible'])
  if (recursion !== 'Enabled' && recursion !== 'IfPossible') return
  if (readOnly !== true) found.forbidden(at, 'may only be specified when readOnly is true')
  if (mode !== undefined && mode !== 'None') {
    found.forbidden(at, 'may only be specified when mountPropagation is None or not specified')
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
      for (const words of portNameErrors(name)) found.invalid(`${at}.name`, name, words)
      if (names.has(name)) found.duplicate(`${at}.name`, name)
      names.add(name)
    }
    if (containerPort === 0) found.required(`${at}.containerPort`)
    else if (containerPort !== undefined && !isPort(containerPort))
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
      found.invalid(`${at}.name`, name, environmentWords)
    }
    if (!isRecord(valueFrom)) continue
    if (value !== undefined && value !== '' && Object.keys(valueFrom).length > 0) {
      found.invalid(`${at}.valueFrom`, '', 'may not be specified when `value` is not empty')
    }
    checkVariableSource(valueFrom, `${at}.valueFrom`, found)
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

/** Validates a key of a ConfigMap or Secret. */
export function checkKey(key: unknown, path: string, found: Findings): void {
  if (key === undefined || key === '') return found.required(path)
  if (typeof key !== 'string') return
  if (key.length > 253) found.invalid(path, key, 'must be no more than 253 characters')
  if (!dataKey.test(key)) found.invalid(path, key, keyWords)
  else if (key === '.') found.invalid(path, key, "must not be '.'")
  else if (key === '..') found.invalid(path, key, "must not be '..'")
  else if (key.startsWith('..')) found.invalid(path, key, "must not start with '..'")
}

function checkVariableSource(source: Loose, path: string, found: Findings): void {
  if (source['fieldRef']) checkFieldReference(source['fieldRef'], 'environment', `${path}.fieldRef`, found)
  if (source['resourceFieldRef']) {
    checkResourceReference(source['resourceFieldRef'], false, `${path}.resourceFieldRef`, found)
  }
  for (const kind of ['configMapKeyRef', 'secretKeyRef'] as const) {
    const reference: Loose | undefined = source[kind]
    if (reference === undefined) continue
    for (const words of nameErrors(reference['name'] ?? '', 'subdomain')) {
      found.invalid(`${path}.${kind}.name`, reference['name'] ?? '', words)
    }
    checkKey(reference['key'], `${path}.${kind}.key`, found)
  }
}

function checkEnvironmentSources(sources: readonly Loose[], path: string, found: Findings): void {
  for (const [index, { prefix, configMapRef, secretRef }] of sources.entries()) {
    const at = `${path}[${index}]`
    if (typeof prefix === 'string' && prefix !== '' && !environmentName.test(prefix)) {
      found.invalid(`${at}.prefix`, prefix, environmentWords)
    }
    for (const [kind, reference] of [
      ['configMapRef', configMapRef],
      ['secretRef', secretRef],
    ] as const) {
      if (reference === undefined) continue
      if (!reference.name) found.required(`${at}.${kind}.name`)
      else
        for (const words of nameErrors(reference.name, 'subdomain'))
          found.invalid(`${at}.${kind}.name`, reference.name, words)
    }
    const count = [configMapRef, secretRef].filter((each) => each !== undefined).length
    // Reported for the list as a whole.
    if (count === 0) found.invalid(path, '', 'must specify one of: `configMapRef` or `secretRef`')
    if (count > 1) found.invalid(path, '', 'may not have more than one field specified at a time')
  }
}

function checkMounts(container: Loose, path: string, volumes: ReadonlySet<string>, found: Findings): void {
  const paths = new Set<unknown>()
  const mounts = listOf(container, 'volumeMounts')
  for (const [index, mount] of mounts.entries()) {
    const { name, mountPath } = mount
    const at = `${path}[${index}]`
    if (typeof name === 'string' && !volumes.has(name)) found.notFound(`${at}.name`, name)
    for (const field of ['subPath', 'subPathExpr']) {
      const value: unknown = ownValue(mount, field)
      if (typeof value !== 'string' || value === '') continue
      // Reported without the index of the mount.
      if (value.startsWith('/')) found.invalid(`${path}.${field}`, value, 'must be a relative path')
      checkNoBacksteps(value, `${path}.${field}`, found)
    }
    if (mount['subPath'] && mount['subPathExpr']) {
      found.invalid(
        `${at}.subPathExpr`,
        mount['subPathExpr'],
        'subPathExpr and subPath are mutually exclusive',
      )
    }
    checkPropagation(mount, container, path, found)
    if (paths.has(mountPath)) found.invalid(`${at}.mountPath`, mountPath, 'must be unique')
    paths.add(mountPath)
  }
}

/** Resource names without a domain that containers may request. */
const standardResources = new Set(['cpu', 'memory', 'ephemeral-storage'])

/** Checks requests and limits of a container or a pod. */
export function checkResources(resources: Loose | undefined, path: string, found: Findings): void {
  if (resources === undefined) return
  const { requests = {}, limits = {} } = resources
  checkHugePages(resources, path, found)
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

/** Huge pages require CPU or memory. */
function checkHugePages(resources: Loose | undefined, path: string, found: Findings): void {
  const names = [...Object.keys(resources?.['limits'] ?? {}), ...Object.keys(resources?.['requests'] ?? {})]
  if (
    names.some((name) => name.startsWith(hugePages)) &&
    !names.includes('cpu') &&
    !names.includes('memory')
  ) {
    found.forbidden(path, 'HugePages require cpu or memory')
  }
}

function overcommitsNever(name: string): boolean {
  return name.startsWith(hugePages) || (name.includes('/') && !name.includes('kubernetes.io/'))
}

/** Validates the name of a requested resource. */
export function checkAmountName(name: string, path: string, found: Findings): void {
  if (name.includes('/')) for (const words of qualifiedNameErrors(name)) found.invalid(path, name, words)
  else if (!standardResources.has(name) && !name.startsWith(hugePages)) {
    found.invalid(path, name, 'must be a standard resource for containers')
  }
}

function checkAmount(name: string, value: unknown, path: string, found: Findings): void {
  const at = `${path}[${name}]`
  const extended = name.includes('/')
  checkAmountName(name, at, found)
  if (typeof value !== 'string' || !isQuantity(value)) return
  const nanos = quantityNanos(value) ?? 0n
  if (nanos < 0n) found.invalid(at, value, 'must be greater than or equal to 0')
  if (extended && nanos % unit !== 0n) found.invalid(at, value, 'must be an integer')
  if (name.startsWith(hugePages) && !isOfPages(nanos, name.slice(hugePages.length)))
    found.invalid(at, value, `${value} is not positive integer multiple of ${name}`)
}

const unit = 1_000_000_000n
const hugePages = 'hugepages-'

/** @param nanos bytes, in billionths. @param size of a page, such as `2Mi`; none divides by a size that is not a number of bytes. */
function isOfPages(nanos: bigint, size: string): boolean {
  const page = isQuantity(size) ? (quantityNanos(size) ?? 0n) : 0n
  // A part of a byte counts as one.
  return page > 0n && page % unit === 0n && ((nanos + unit - 1n) / unit) % (page / unit) === 0n
}

const probeHandlers = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep']

/** Validates a port number or name. */
export function checkPortOrName(port: unknown, path: string, found: Findings): void {
  if (typeof port === 'number') {
    if (!isPort(port)) found.invalid(path, port, portRange)
  } else if (typeof port === 'string')
    for (const words of portNameErrors(port)) found.invalid(path, port, words)
}

function portNameErrors(name: string): readonly string[] {
  const errors: string[] = []
  if (name.length > 15) errors.push('must be no more than 15 characters')
  if (!/^[-a-z0-9]+$/.test(name)) {
    errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  }
  if (!/[a-z]/.test(name)) errors.push('must contain at least one letter (a-z)')
  if (name.includes('--')) errors.push('must not contain consecutive hyphens')
  if (name.startsWith('-') || name.endsWith('-')) errors.push('must not begin or end with a hyphen')
  return errors
}

const headerName = /^[-A-Za-z0-9]+$/

function checkHandler(handler: Loose, path: string, found: Findings): void {
  const given = probeHandlers.filter((each) => ownValue(handler, each) !== undefined)
  if (given.length === 0) found.required(path, 'must specify a handler type')
  for (const extra of given.slice(1))
    found.forbidden(`${path}.${extra}`, 'may not specify more than 1 handler type')
  switch (given[0]) {
    case 'exec':
      if (listOfText(handler['exec'], 'command').length === 0) found.required(`${path}.exec.command`)
      break
    case 'httpGet':
      checkHttpGet(handler['httpGet'], `${path}.httpGet`, found)
      break
    case 'tcpSocket':
      checkPortOrName(handler['tcpSocket']?.port, `${path}.tcpSocket.port`, found)
      break
    case 'grpc':
      checkPortOrName(handler['grpc']?.port, `${path}.grpc.port`, found)
      break
    case undefined:
    default:
  }
}

function listOfText(record: Loose | undefined, field: string): readonly unknown[] {
  const list: unknown = ownValue(record, field)
  return Array.isArray(list) ? list : []
}

function checkHttpGet(action: Loose, path: string, found: Findings): void {
  checkPortOrName(action['port'], `${path}.port`, found)
  found.oneOf(`${path}.scheme`, action['scheme'], ['HTTP', 'HTTPS'])
  for (const { name } of listOf(action, 'httpHeaders')) {
    if (typeof name === 'string' && !headerName.test(name)) {
      const words =
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
      found.invalid(`${path}.httpHeaders`, name, words)
    }
  }
}

const probeNumbers = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
]

function checkProbe(probe: Loose | undefined, path: string, found: Findings): void {
  if (probe === undefined) return
  checkHandler(probe, path, found)
  for (const field of probeNumbers) found.notNegative(`${path}.${field}`, ownValue(probe, field))
  const { successThreshold, terminationGracePeriodSeconds: grace } = probe
  if (typeof grace === 'number' && grace <= 0) {
    found.invalid(`${path}.terminationGracePeriodSeconds`, grace, 'must be greater than 0')
  }
  if (path.endsWith('readinessProbe')) {
    if (grace !== undefined) {
      found.invalid(`${path}.terminationGracePeriodSeconds`, grace, 'must not be set for readinessProbes')
    }
  } else if (typeof successThreshold === 'number' && successThreshold !== 1) {
    found.invalid(`${path}.successThreshold`, successThreshold, 'must be 1')
  }
}
