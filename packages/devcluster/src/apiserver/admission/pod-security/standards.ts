/**
 * The controls of the Pod Security Standards in all their versions, worded as kube-apiserver 1.36 does.
 * conformance/suite/pod-security.test.ts holds them to it.
 */
import { appArmorPrefix } from '../../../schema/index.ts'

export type Level = 'privileged' | 'baseline' | 'restricted'

/** Levels from the least strict to the strictest. */
export const levels: readonly Level[] = ['privileged', 'baseline', 'restricted']

/** A control that a pod does not meet. */
export interface Violation {
  readonly reason: string
  readonly detail: string
}

interface Profile {
  readonly type?: string
}

/** The security context of a pod or container. */
interface SecurityContext {
  readonly privileged?: boolean
  readonly allowPrivilegeEscalation?: boolean
  readonly runAsNonRoot?: boolean
  readonly runAsUser?: number
  readonly procMount?: string
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] }
  readonly seccompProfile?: Profile
  readonly appArmorProfile?: Profile
  readonly seLinuxOptions?: { readonly type?: string; readonly user?: string; readonly role?: string }
  readonly windowsOptions?: { readonly hostProcess?: boolean }
  readonly sysctls?: readonly { readonly name: string }[]
}

interface Handler {
  readonly httpGet?: { readonly host?: string }
  readonly tcpSocket?: { readonly host?: string }
}

interface SecuredContainer {
  readonly name: string
  readonly image?: string
  readonly securityContext?: SecurityContext
  readonly ports?: readonly { readonly hostPort?: number }[]
  readonly livenessProbe?: Handler
  readonly readinessProbe?: Handler
  readonly startupProbe?: Handler
  readonly lifecycle?: { readonly postStart?: Handler; readonly preStop?: Handler }
}

/** A valid pod or pod template, as far as the standards read it. */
export interface SecuredPod {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> }
  readonly spec?: {
    readonly containers?: readonly SecuredContainer[]
    readonly initContainers?: readonly SecuredContainer[]
    readonly ephemeralContainers?: readonly SecuredContainer[]
    readonly securityContext?: SecurityContext
    readonly volumes?: readonly { readonly name: string }[]
    readonly os?: { readonly name?: string }
    readonly hostNetwork?: boolean
    readonly hostPID?: boolean
    readonly hostIPC?: boolean
    readonly hostUsers?: boolean
  }
}

type Spec = NonNullable<SecuredPod['spec']>

/** What the controls read of a pod. */
interface Checked {
  readonly spec: Spec
  /** Of all kinds, in the order in which they are reported. */
  readonly containers: readonly SecuredContainer[]
  readonly annotations: Readonly<Record<string, string>>
  /** The minor version of the standard. */
  readonly minor: number
}

/** A control returns what a pod violates of it. */
type Check = (pod: Checked) => Violation | undefined

interface Control {
  readonly check: Check
  /** The first minor version of the standard that has it; default: all. */
  readonly since?: number
  /** From this minor version on, level restricted has a stricter control in its place. */
  readonly stricterSince?: number
}

/** All containers of a pod, in the order in which violations name them. */
export function containersOf({ spec = {} }: SecuredPod): readonly SecuredContainer[] {
  const { initContainers, containers, ephemeralContainers } = spec
  return [...(initContainers ?? []), ...(containers ?? []), ...(ephemeralContainers ?? [])]
}

/**
 * What a pod violates of a level, in the order of kube-apiserver.
 * @param minor the version of the standard; later ones than the last change are equal to it.
 */
export function violations(pod: SecuredPod, level: Level, minor: number): readonly Violation[] {
  if (level === 'privileged') return []
  const isRestricted = level === 'restricted'
  const controls = [
    ...baseline.filter(
      ({ stricterSince }) => !isRestricted || stricterSince === undefined || minor < stricterSince,
    ),
    ...(isRestricted ? restricted : []),
  ]
  const annotations = pod.metadata?.annotations ?? {}
  const checked = { spec: pod.spec ?? {}, containers: containersOf(pod), annotations, minor }
  return controls
    .filter(({ since = 0 }) => minor >= since)
    .map(({ check }) => check(checked))
    .filter((violation) => violation !== undefined)
}

const quoted = (values: readonly string[]): string => values.map((value) => `"${value}"`).join(', ')

const counted = (noun: string, values: readonly string[]): string =>
  `${noun}${values.length > 1 ? 's' : ''} ${quoted(values)}`

const distinct = (values: readonly string[]): readonly string[] => [...new Set(values)].toSorted()

/** The names of the containers for which a condition holds. */
function containersThat(
  { containers }: Checked,
  holds: (context: SecurityContext, container: SecuredContainer) => boolean,
): readonly string[] {
  return containers
    .filter((container) => holds(container.securityContext ?? {}, container))
    .map(({ name }) => name)
}

/** `pod and container "a"`: who sets a field in a way that is not allowed, or undefined if nobody does. */
function settersOf(pod: Checked, isForbidden: (context: SecurityContext) => boolean): string | undefined {
  const names = containersThat(pod, isForbidden)
  const setters = [
    ...(isForbidden(pod.spec.securityContext ?? {}) ? ['pod'] : []),
    ...(names.length > 0 ? [counted('container', names)] : []),
  ]
  return setters.length === 0 ? undefined : setters.join(' and ')
}

/** A field that pods and containers must not set in a certain way. */
function forbiddenField(
  reason: string,
  field: string,
  isForbidden: (context: SecurityContext) => boolean,
): Check {
  return (pod) => {
    const setters = settersOf(pod, isForbidden)
    return setters === undefined ? undefined : { reason, detail: `${setters} must not set ${field}` }
  }
}

const appArmor: Check = (pod) => {
  const isUnconfined = ({ appArmorProfile }: SecurityContext) => appArmorProfile?.type === 'Unconfined'
  const setters = settersOf(pod, isUnconfined)
  const annotations = Object.entries(pod.annotations)
    .filter(([key, value]) => key.startsWith(appArmorPrefix) && !isConfined(value))
    .map(([key, value]) => `${key}="${value}"`)
  const values = [...(setters === undefined ? [] : ['Unconfined']), ...annotations.toSorted()]
  if (values.length === 0) return undefined
  const noun = annotations.length === 0 ? [] : [`annotation${annotations.length > 1 ? 's' : ''}`]
  const all = [...(setters === undefined ? [] : [setters]), ...noun].join(' and ')
  return {
    reason: `forbidden AppArmor profile${values.length > 1 ? 's' : ''}`,
    detail: `${all} must not set AppArmor profile type to ${quoted(values)}`,
  }
}

const isConfined = (annotation: string): boolean =>
  annotation === '' || annotation === 'runtime/default' || annotation.startsWith('localhost/')

const defaultCapabilities: ReadonlySet<string> = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
])

/** Who adds capabilities besides the allowed ones. */
function addedCapabilities(pod: Checked, allowed: ReadonlySet<string>): string | undefined {
  const forbiddenOf = ({ capabilities }: SecurityContext) =>
    (capabilities?.add ?? []).filter((capability) => !allowed.has(capability))
  const names = containersThat(pod, (context) => forbiddenOf(context).length > 0)
  if (names.length === 0) return undefined
  const capabilities = pod.containers.flatMap(({ securityContext = {} }) => forbiddenOf(securityContext))
  return `${counted('container', names)} must not include ${quoted(distinct(capabilities))} in securityContext.capabilities.add`
}

const capabilities: Check = (pod) => {
  const detail = addedCapabilities(pod, defaultCapabilities)
  return detail === undefined ? undefined : { reason: 'non-default capabilities', detail }
}

const hostNamespaces: Check = ({ spec }) => {
  const shared = (['hostNetwork', 'hostPID', 'hostIPC'] as const).filter((field) => spec[field] === true)
  if (shared.length === 0) return undefined
  return { reason: 'host namespaces', detail: shared.map((field) => `${field}=true`).join(', ') }
}

const hostPaths: Check = ({ spec }) => {
  const names = (spec.volumes ?? []).filter((volume) => Object.hasOwn(volume, 'hostPath'))
  if (names.length === 0) return undefined
  return {
    reason: 'hostPath volumes',
    detail: counted(
      'volume',
      names.map(({ name }) => name),
    ),
  }
}

const hostPorts: Check = (pod) => {
  const portsOf = ({ ports }: SecuredContainer) =>
    (ports ?? []).flatMap(({ hostPort = 0 }) => (hostPort === 0 ? [] : [String(hostPort)]))
  const names = containersThat(pod, (_context, container) => portsOf(container).length > 0)
  if (names.length === 0) return undefined
  const ports = distinct(pod.containers.flatMap(portsOf))
  const uses = names.length > 1 ? 'use' : 'uses'
  return {
    reason: 'hostPort',
    detail: `${counted('container', names)} ${uses} hostPort${ports.length > 1 ? 's' : ''} ${ports.join(', ')}`,
  }
}

const probeHosts: Check = (pod) => {
  const hostsOf = ({ livenessProbe, readinessProbe, startupProbe, lifecycle }: SecuredContainer) =>
    [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop]
      .flatMap((handler) => [handler?.httpGet?.host ?? '', handler?.tcpSocket?.host ?? ''])
      .filter((host) => host !== '')
  const names = distinct(containersThat(pod, (_context, container) => hostsOf(container).length > 0))
  if (names.length === 0) return undefined
  const hosts = distinct(pod.containers.flatMap((container) => hostsOf(container)))
  const uses = names.length > 1 ? 'use' : 'uses'
  return {
    reason: 'probe or lifecycle host',
    detail: `${counted('container', names)} ${uses} ${counted('probe or lifecycle host', hosts)}`,
  }
}

/** A field that only containers have, and that they must not set in a certain way. */
function forbiddenOfContainers(
  reason: string,
  field: string,
  isForbidden: (context: SecurityContext) => boolean,
): Check {
  return (pod) => {
    const names = containersThat(pod, isForbidden)
    if (names.length === 0) return undefined
    return { reason, detail: `${counted('container', names)} must not set securityContext.${field}` }
  }
}

const privileged = forbiddenOfContainers('privileged', 'privileged=true', (one) => one.privileged === true)

const unmasked = forbiddenOfContainers(
  'procMount',
  'procMount to "Unmasked"',
  (one) => one.procMount === 'Unmasked',
)

/** Root of a user namespace is nobody on the node, which the standards take into account since 1.35. */
const hasOwnUsers = ({ spec, minor }: Checked): boolean => minor >= 35 && spec.hostUsers === false

const procMount: Check = (pod) => (hasOwnUsers(pod) ? undefined : unmasked(pod))

const seLinux: Check = (pod) => {
  const isAllowed = (type: string) =>
    ['', 'container_t', 'container_init_t', 'container_kvm_t'].includes(type) ||
    (type === 'container_engine_t' && pod.minor >= 31)
  const setters = settersOf(pod, ({ seLinuxOptions: { type = '', user = '', role = '' } = {} }) => {
    return !isAllowed(type) || user !== '' || role !== ''
  })
  if (setters === undefined) return undefined
  const options = [pod.spec, ...pod.containers].map((one) => one.securityContext?.seLinuxOptions ?? {})
  const types = distinct(options.map(({ type = '' }) => type).filter((type) => !isAllowed(type)))
  const wrong = [
    ...(types.length > 0 ? [counted('type', types)] : []),
    ...(options.some(({ user = '' }) => user !== '') ? ['user may not be set'] : []),
    ...(options.some(({ role = '' }) => role !== '') ? ['role may not be set'] : []),
  ]
  const detail = `${setters} set forbidden securityContext.seLinuxOptions: ${wrong.join('; ')}`
  return { reason: 'seLinuxOptions', detail }
}

const unconfined = forbiddenField(
  'seccompProfile',
  'securityContext.seccompProfile.type to "Unconfined"',
  ({ seccompProfile }) => seccompProfile?.type === 'Unconfined',
)

/** Before 1.19, profiles were annotations; what a container has not is not read. */
const seccompAnnotations: Check = ({ annotations, containers }) => {
  const keys = new Set([
    'seccomp.security.alpha.kubernetes.io/pod',
    ...containers.map(({ name }) => `container.seccomp.security.alpha.kubernetes.io/${name}`),
  ])
  const isAllowed = (value: string) =>
    ['', 'runtime/default', 'docker/default'].includes(value) || value.startsWith('localhost/')
  const set = Object.entries(annotations).filter(([key, value]) => keys.has(key) && !isAllowed(value))
  if (set.length === 0) return undefined
  const texts = set.map(([key, value]) => `${key}="${value}"`).toSorted()
  return {
    reason: 'seccompProfile',
    detail: `forbidden annotation${set.length > 1 ? 's' : ''} ${texts.join(', ')}`,
  }
}

const seccomp: Check = (pod) => (pod.minor < 19 ? seccompAnnotations(pod) : unconfined(pod))

/** Sysctls that are safe for the node and other pods, by the minor version that allows them first. */
const safeSysctls: ReadonlyMap<string, number> = new Map([
  ['kernel.shm_rmid_forced', 0],
  ['net.ipv4.ip_local_port_range', 0],
  ['net.ipv4.tcp_syncookies', 0],
  ['net.ipv4.ping_group_range', 0],
  ['net.ipv4.ip_unprivileged_port_start', 0],
  ['net.ipv4.ip_local_reserved_ports', 27],
  ['net.ipv4.tcp_keepalive_time', 29],
  ['net.ipv4.tcp_fin_timeout', 29],
  ['net.ipv4.tcp_keepalive_intvl', 29],
  ['net.ipv4.tcp_keepalive_probes', 29],
  ['net.ipv4.tcp_rmem', 32],
  ['net.ipv4.tcp_wmem', 32],
])

const sysctls: Check = ({ spec, minor }) => {
  const names = (spec.securityContext?.sysctls ?? []).map(({ name }) => name)
  const forbidden = names.filter((name) => {
    const since = safeSysctls.get(name)
    return since === undefined || minor < since
  })
  return forbidden.length === 0 ? undefined : { reason: 'forbidden sysctls', detail: forbidden.join(', ') }
}

const hostProcess = forbiddenField(
  'hostProcess',
  'securityContext.windowsOptions.hostProcess=true',
  ({ windowsOptions }) => windowsOptions?.hostProcess === true,
)

const baseline: readonly Control[] = [
  { check: appArmor },
  { check: capabilities, stricterSince: 22 },
  { check: hostNamespaces },
  { check: hostPaths, stricterSince: 0 },
  { check: hostPorts },
  { check: probeHosts, since: 34 },
  { check: privileged },
  { check: procMount, stricterSince: 35 },
  { check: seLinux },
  { check: seccomp, stricterSince: 19 },
  { check: sysctls },
  { check: hostProcess },
]

/** Since 1.25, pods that state that they are for Windows need not set what only Linux knows. */
const onLinux =
  (check: Check): Check =>
  (pod) =>
    pod.minor >= 25 && pod.spec.os?.name === 'windows' ? undefined : check(pod)

const privilegeEscalation: Check = (pod) => {
  const names = containersThat(pod, ({ allowPrivilegeEscalation }) => allowPrivilegeEscalation !== false)
  if (names.length === 0) return undefined
  return {
    reason: 'allowPrivilegeEscalation != false',
    detail: `${counted('container', names)} must set securityContext.allowPrivilegeEscalation=false`,
  }
}

const restrictedCapabilities: Check = (pod) => {
  const keeping = containersThat(pod, (context) => !(context.capabilities?.drop ?? []).includes('ALL'))
  const details = [
    keeping.length === 0
      ? undefined
      : `${counted('container', keeping)} must set securityContext.capabilities.drop=["ALL"]`,
    addedCapabilities(pod, new Set(['NET_BIND_SERVICE'])),
  ].filter((detail) => detail !== undefined)
  return details.length === 0
    ? undefined
    : { reason: 'unrestricted capabilities', detail: details.join('; ') }
}

const allowedVolumes: ReadonlySet<string> = new Set([
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'image',
  'persistentVolumeClaim',
  'projected',
  'secret',
])

const volumeTypes: Check = ({ spec }) => {
  const typeOf = (volume: object) => Object.keys(volume).find((key) => key !== 'name') ?? 'emptyDir'
  const bad = (spec.volumes ?? []).filter((volume) => !allowedVolumes.has(typeOf(volume)))
  if (bad.length === 0) return undefined
  const names = bad.map(({ name }) => name)
  const uses = names.length > 1 ? 'use' : 'uses'
  const types = counted('restricted volume type', distinct(bad.map(typeOf)))
  return { reason: 'restricted volume types', detail: `${counted('volume', names)} ${uses} ${types}` }
}

/**
 * A field that every container must set, itself or by its pod. Those who set it wrongly are named alone.
 * @param read whether the field is set well; undefined where it is absent.
 */
function requiredField(
  reason: string,
  texts: { readonly wrong: string; readonly missing: string },
  read: (context: SecurityContext) => boolean | undefined,
): Check {
  return (pod) => {
    const setters = settersOf(pod, (context) => read(context) === false)
    if (setters !== undefined) return { reason, detail: `${setters} must not set ${texts.wrong}` }
    if (read(pod.spec.securityContext ?? {}) === true) return undefined
    const names = containersThat(pod, (context) => read(context) === undefined)
    if (names.length === 0) return undefined
    return { reason, detail: `pod or ${counted('container', names)} must set ${texts.missing}` }
  }
}

const nonRoot = requiredField(
  'runAsNonRoot != true',
  { wrong: 'securityContext.runAsNonRoot=false', missing: 'securityContext.runAsNonRoot=true' },
  ({ runAsNonRoot }) => runAsNonRoot,
)

const rootUser = forbiddenField('runAsUser=0', 'runAsUser=0', ({ runAsUser }) => runAsUser === 0)

const restrictedSeccomp = requiredField(
  'seccompProfile',
  {
    wrong: 'securityContext.seccompProfile.type to "Unconfined"',
    missing: 'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"',
  },
  ({ seccompProfile }) => (seccompProfile === undefined ? undefined : seccompProfile.type !== 'Unconfined'),
)

const restricted: readonly Control[] = [
  { check: onLinux(privilegeEscalation), since: 8 },
  { check: onLinux(restrictedCapabilities), since: 22 },
  { check: unmasked, since: 35 },
  { check: volumeTypes },
  { check: (pod) => (hasOwnUsers(pod) ? undefined : nonRoot(pod)) },
  { check: (pod) => (hasOwnUsers(pod) ? undefined : rootUser(pod)), since: 23 },
  { check: onLinux(restrictedSeccomp), since: 19 },
]
