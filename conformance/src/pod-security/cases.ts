/** Random namespaces, pods and workloads for PodSecurity admission. */
import type { Random } from '@tenon/runtime'
import { Draw } from '../scheduling-proof/objects.ts'
import type { SecurityCase } from './comparison.ts'

type Fields = Record<string, unknown>

/** A pod in the making: what may be changed to violate a control. */
interface Draft {
  annotations: Record<string, string>
  spec: Fields
  context: Fields
  containers: { name: string; fields: Fields; context: Fields }[]
}

type Change = (draw: Draw, draft: Draft) => void

const prefix = 'pod-security.kubernetes.io/'
const modes = ['enforce', 'warn', 'audit'] as const
const levels = ['privileged', 'baseline', 'restricted']

function version(draw: Draw): string {
  // Versions in which a control changed, and those before.
  const edges = [0, 7, 8, 18, 19, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 999]
  return draw.chance(25) ? 'latest' : `v1.${draw.pick(edges)}`
}

/** Labels of a namespace; some ask for nothing. */
export function securityLabels(random: Random): Record<string, string> {
  const draw = new Draw(random)
  const labels: Record<string, string> = {}
  for (const mode of modes) {
    if (draw.chance(70)) labels[`${prefix}${mode}`] = draw.pick([...levels, 'baseline', 'restricted'])
    if (draw.chance(50)) labels[`${prefix}${mode}-version`] = version(draw)
  }
  return labels
}

/** Labels of which some are not valid. */
export function oddLabels(random: Random): Record<string, string> {
  const draw = new Draw(random)
  const odd = ['', 'Restricted', 'none', 'v1', '1.25', 'v1.025', 'v2.0', 'v1.9223372036854775807']
  const worse = [...odd, 'v1.9223372036854775808', 'latest', 'v1.3', 'LATEST', 'v1.3.1', 'baseline']
  const keys = [...modes, 'enforce-version', 'warn-version', 'audit-version', 'exempt']
  return Object.fromEntries(draw.some(keys, 3).map((key) => [`${prefix}${key}`, draw.pick(worse)]))
}

const anyContext = (draw: Draw, draft: Draft): Fields =>
  draw.chance(40) ? draft.context : draw.pick(draft.containers).context

const inContainer =
  (change: (draw: Draw, container: Draft['containers'][number], draft: Draft) => void): Change =>
  (draw, draft) =>
    change(draw, draw.pick(draft.containers), draft)

const capabilityNames = [
  'NET_BIND_SERVICE',
  'CHOWN',
  'SYS_TIME',
  'NET_RAW',
  'SYS_ADMIN',
  'KILL',
  'ALL',
  'chown',
]
const sysctlNames = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_rmem',
  'net.core.somaxconn',
  'kernel.msgmax',
]
const sources: readonly Fields[] = [
  { hostPath: { path: '/var' } },
  { hostPath: { path: '/etc', type: 'Directory' } },
  { nfs: { server: 'files', path: '/' } },
  { gitRepo: { repository: 'https://example.com/a.git' } },
  { cephfs: { monitors: ['m'] } },
  { rbd: { monitors: ['m'], image: 'i' } },
  { storageos: { volumeName: 'v', volumeNamespace: 'n' } },
  { awsElasticBlockStore: { volumeID: 'v' } },
  { iscsi: { targetPortal: '192.0.2.1', iqn: 'iqn.2001-04.com.example:x', lun: 0 } },
  { image: { reference: 'registry.example/data:1' } },
  { emptyDir: {} },
  {},
  { secret: { secretName: 's' } },
  { configMap: { name: 'c' } },
  { csi: { driver: 'csi.example.com' } },
  { persistentVolumeClaim: { claimName: 'c' } },
  { downwardAPI: { items: [] } },
  { projected: { sources: [] } },
  {
    ephemeral: {
      volumeClaimTemplate: {
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    },
  },
]
const appArmor = ['unconfined', 'runtime/default', 'localhost/mine', 'unconfined']
const seccomp = ['unconfined', 'runtime/default', 'docker/default', 'localhost/mine']

const profile = (draw: Draw): Fields => {
  const type = draw.pick(['Unconfined', 'RuntimeDefault', 'Localhost', 'Unconfined'])
  return { type, ...(type === 'Localhost' && { localhostProfile: 'mine' }) }
}

const handler = (draw: Draw): Fields => {
  const host = draw.pick<string | undefined>(['127.0.0.1', 'localhost', 'db.example', '', undefined])
  const at = { port: 8080, ...(host !== undefined && { host }) }
  return draw.pick<Fields>([{ httpGet: at }, { tcpSocket: at }, { exec: { command: ['true'] } }])
}

const changes: readonly Change[] = [
  (draw, { spec }) => void (spec[draw.pick(['hostNetwork', 'hostPID', 'hostIPC'])] = draw.chance(80)),
  inContainer((draw, { context }) => {
    context['privileged'] = draw.chance(80)
    if (context['privileged'] === true) delete context['allowPrivilegeEscalation']
  }),
  inContainer((draw, { context }) => {
    if (draw.chance(60)) delete context['allowPrivilegeEscalation']
    else context['allowPrivilegeEscalation'] = context['privileged'] === true || draw.chance(80)
  }),
  inContainer((draw, { context }) => {
    context['capabilities'] = {
      ...(draw.chance(70) && { add: draw.some(capabilityNames, 3) }),
      ...(draw.chance(60) && { drop: draw.pick([['ALL'], ['KILL'], ['all'], ['CHOWN', 'ALL'], []]) }),
    }
  }),
  (draw, { spec }) => {
    const volumes = draw.some(sources, 4).map((source, index) => ({ name: `v${index}`, ...source }))
    spec['volumes'] = volumes
  },
  inContainer((draw, { fields, name }) => {
    const ports = draw.some([80, 443, 9, 10_000], 3)
    const offset = 20_000 + (name.codePointAt(0) ?? 0) * 100
    fields['ports'] = ports.map((port) => ({
      containerPort: offset + port,
      ...(draw.chance(70) && { hostPort: offset + port }),
    }))
  }),
  (draw, draft) => void (anyContext(draw, draft)['appArmorProfile'] = profile(draw)),
  (draw, draft) => {
    const context = anyContext(draw, draft)
    if (draw.chance(40)) delete context['seccompProfile']
    else context['seccompProfile'] = profile(draw)
  },
  (draw, draft) => {
    for (const one of [draft, ...draft.containers]) delete one.context['seccompProfile']
    if (draw.chance(50)) draft.context['seccompProfile'] = profile(draw)
  },
  (draw, draft) => {
    const options: Fields = {}
    const types = ['container_t', 'container_engine_t', 'spc_t', 'a_t', 'container_init_t', '']
    if (draw.chance(80)) options['type'] = draw.pick(types)
    if (draw.chance(30)) options['user'] = draw.pick(['u', ''])
    if (draw.chance(30)) options['role'] = draw.pick(['r', ''])
    if (draw.chance(30)) options['level'] = 's0'
    anyContext(draw, draft)['seLinuxOptions'] = options
  },
  (draw, draft) => {
    const names = draw.some(sysctlNames, 4)
    if (draw.chance(50)) names.reverse()
    draft.context['sysctls'] = names.map((name) => ({ name, value: '1' }))
  },
  (draw, draft) => {
    const context = anyContext(draw, draft)
    if (draw.chance(50)) context['runAsNonRoot'] = draw.chance(30)
    else delete context['runAsNonRoot']
  },
  (draw, draft) => {
    for (const one of [draft, ...draft.containers]) delete one.context['runAsNonRoot']
    if (draw.chance(50)) draft.context['runAsNonRoot'] = draw.chance(70)
  },
  (draw, draft) => void (anyContext(draw, draft)['runAsUser'] = draw.pick([0, 0, 1000])),
  (draw, { spec }) => void (spec['hostUsers'] = draw.chance(20)),
  (draw, draft) => {
    draft.spec['hostUsers'] = false
    draw.pick(draft.containers).context['procMount'] = draw.pick(['Unmasked', 'Default', 'Unmasked'])
  },
  (draw, draft) => {
    const isHostProcess = draw.chance(80)
    if (isHostProcess) draft.spec['hostNetwork'] = true
    draft.context['windowsOptions'] = { hostProcess: isHostProcess }
    for (const { context } of draft.containers) {
      if (draw.chance(40)) context['windowsOptions'] = { hostProcess: isHostProcess }
    }
  },
  inContainer((draw, { name }, { annotations }) => {
    annotations[`container.apparmor.security.beta.kubernetes.io/${name}`] = draw.pick(appArmor)
  }),
  inContainer((draw, { name }, { annotations }) => {
    annotations[`container.seccomp.security.alpha.kubernetes.io/${name}`] = draw.pick(seccomp)
  }),
  (draw, { annotations }) => {
    annotations['seccomp.security.alpha.kubernetes.io/pod'] = draw.pick(seccomp)
  },
  (draw, { annotations }) => {
    annotations['container.seccomp.security.alpha.kubernetes.io/nobody'] = draw.pick(seccomp)
  },
  inContainer((draw, { fields }) => {
    const field = draw.pick(['livenessProbe', 'readinessProbe', 'startupProbe', 'lifecycle'])
    if (field !== 'lifecycle') fields[field] = handler(draw)
    else fields[field] = { [draw.pick(['postStart', 'preStop'])]: handler(draw) }
  }),
]

/** Windows pods may not set what only Linux knows. */
const windowsChanges: readonly Change[] = [
  (draw, draft) => void (anyContext(draw, draft)['runAsNonRoot'] = draw.chance(50)),
  (draw, { spec }) => void (spec['volumes'] = [{ name: 'v', ...draw.pick(sources) }]),
  (_draw, draft) => {
    draft.spec['hostNetwork'] = true
    draft.context['windowsOptions'] = { hostProcess: true }
  },
  (draw, draft) => {
    const { name, fields } = draw.pick(draft.containers)
    const port = 80 + (name.codePointAt(0) ?? 0)
    fields['ports'] = [{ containerPort: port, hostPort: port }]
  },
]

/** A pod template: one that meets level restricted, with some changes. */
function template(draw: Draw): { metadata: Fields; spec: Fields } {
  const isWindows = draw.chance(8)
  const good = {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  }
  const base = (): Fields => {
    if (isWindows) return draw.chance(50) ? { runAsNonRoot: true } : {}
    return draw.chance(80) ? structuredClone(good) : {}
  }
  const names = draw.some(['z', 'b', 'a'], 3)
  const inits = draw.chance(25) ? draw.some(['i', 'y'], 2) : []
  const container = (name: string) => ({ name, fields: {}, context: base() })
  const draft: Draft = {
    annotations: {},
    spec: {},
    context: {},
    containers: [...names, ...inits].map(container),
  }
  for (let left = draw.pick([0, 1, 1, 2, 3, 6]); left > 0; left--) {
    draw.pick(isWindows ? windowsChanges : changes)(draw, draft)
  }
  if (draft.spec['hostNetwork'] === true && draw.chance(70)) delete draft.spec['hostUsers']
  const built = draft.containers.map(({ name, fields, context }) => ({
    name,
    image: `registry.example/${name}:1`,
    ...fields,
    ...((Object.keys(context).length > 0 || draw.chance(20)) && { securityContext: context }),
  }))
  const spec = {
    ...draft.spec,
    ...(isWindows && { os: { name: 'windows' } }),
    ...(Object.keys(draft.context).length > 0 && { securityContext: draft.context }),
    containers: built.filter(({ name }) => names.includes(name)),
    ...(inits.length > 0 && { initContainers: built.filter(({ name }) => inits.includes(name)) }),
  }
  const { annotations } = draft
  const metadata = { labels: { app: 'web' }, ...(Object.keys(annotations).length > 0 && { annotations }) }
  return { metadata, spec }
}

/** A pod to store: no scheduler takes it. */
export function drawPod(name: string, random: Random): Fields {
  const { metadata, spec } = template(new Draw(random))
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, name },
    spec: { ...spec, schedulerName: 'nobody' },
  }
}

const workloads: readonly [plural: string, make: (template: Fields) => Fields][] = [
  ['apps/v1 Deployment', (one) => ({ spec: { selector: { matchLabels: { app: 'web' } }, template: one } })],
  ['apps/v1 ReplicaSet', (one) => ({ spec: { selector: { matchLabels: { app: 'web' } }, template: one } })],
  ['apps/v1 DaemonSet', (one) => ({ spec: { selector: { matchLabels: { app: 'web' } }, template: one } })],
  ['apps/v1 StatefulSet', (one) => ({ spec: { selector: { matchLabels: { app: 'web' } }, template: one } })],
  ['batch/v1 Job', (one) => ({ spec: { template: neverRestarted(one) } })],
  [
    'batch/v1 CronJob',
    (one) => ({ spec: { schedule: '0 3 * * *', jobTemplate: { spec: { template: neverRestarted(one) } } } }),
  ],
  ['v1 ReplicationController', (one) => ({ spec: { selector: { app: 'web' }, template: one } })],
  ['v1 PodTemplate', (one) => ({ template: one })],
]

function neverRestarted(one: Fields): Fields {
  return { ...one, spec: { ...(one['spec'] as Fields), restartPolicy: 'Never' } }
}

/** The creation of a pod or, less often, of a workload in one of the namespaces. */
export function drawCreation(name: string, namespaces: readonly string[], random: Random): SecurityCase {
  const draw = new Draw(random)
  const into = `namespaces/${draw.pick(namespaces)}`
  const one = template(draw)
  if (draw.chance(75)) {
    const named = draw.chance(5) ? { generateName: 'made-' } : { name }
    const body = { apiVersion: 'v1', kind: 'Pod', ...one, metadata: { ...one.metadata, ...named } }
    return { name, method: 'POST', path: `/api/v1/${into}/pods`, body }
  }
  const [type, make] = draw.pick(workloads)
  const [apiVersion = '', kind = ''] = type.split(' ')
  const root = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
  const body = { apiVersion, kind, metadata: { name }, ...make(one) }
  return { name, method: 'POST', path: `${root}/${into}/${kind.toLowerCase()}s`, body }
}

/** An update of a stored pod, or of the labels of its namespace. */
export function drawUpdate(
  name: string,
  namespace: string,
  pods: readonly Fields[],
  random: Random,
): SecurityCase {
  const draw = new Draw(random)
  const merge = 'application/merge-patch+json'
  if (draw.chance(50)) {
    const labels = draw.chance(15) ? oddLabels(random) : securityLabels(random)
    // Of the labels that are not drawn, some go.
    const gone = draw.some([...modes, 'enforce-version'], 2).map((key) => [`${prefix}${key}`, null])
    const body = { metadata: { labels: { ...Object.fromEntries(gone), ...labels } } }
    return { name, method: 'PATCH', path: `/api/v1/namespaces/${namespace}`, body, contentType: merge }
  }
  const pod = draw.pick(pods)
  const { name: podName } = pod['metadata'] as { name: string }
  const path = `/api/v1/namespaces/${namespace}/pods/${podName}`
  if (draw.chance(40)) {
    const body = [{ op: 'replace', path: '/spec/containers/0/image', value: 'registry.example/new:2' }]
    return { name, method: 'PATCH', path, body, contentType: 'application/json-patch+json' }
  }
  if (draw.chance(50)) {
    return { name, method: 'PATCH', path, body: { metadata: { labels: { more: 'x' } } }, contentType: merge }
  }
  const container = { name: 'debug', image: 'busybox', securityContext: { privileged: draw.chance(50) } }
  return {
    name,
    method: 'PATCH',
    path: `${path}/ephemeralcontainers`,
    body: { spec: { ephemeralContainers: [container] } },
    contentType: 'application/strategic-merge-patch+json',
  }
}
