/** Which pods are one workload: those that an owner makes alike, as far as the scheduler can tell. */
import { controllerOf, hashString, type Pod, podRequests, type PodSpec } from '@tenon/api'

/** Labels that differ between pods of one template. */
const ofInstances: ReadonlySet<string> = new Set([
  'pod-template-hash',
  'controller-revision-hash',
  'pod-template-generation',
  'controller-uid',
  'job-name',
  'batch.kubernetes.io/controller-uid',
  'batch.kubernetes.io/job-name',
  'batch.kubernetes.io/job-completion-index',
  'statefulset.kubernetes.io/pod-name',
  'apps.kubernetes.io/pod-index',
])
/** What CronJobs add to their name for a Job: the minute of its time. */
const cronSuffix = /-\d{8,10}$/

/** By spec, which cached pods of one template share, the keys of its pods by all else that counts. */
const known = new WeakMap<PodSpec, Map<string, string>>()

/**
 * A short key, equal for pods of one owner that ask for the same; it lasts when a pod is made again and when its
 * template is rolled out without a change of what it asks for. The pod must be well-formed.
 */
export function workloadOf(pod: Pod): string {
  const { metadata, spec } = pod
  const labels = Object.entries(metadata.labels ?? {})
    .filter(([name]) => !ofInstances.has(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  const rest = JSON.stringify([metadata.namespace ?? '', ownerOf(pod), labels, claimsOf(pod)])
  const keys = known.get(spec) ?? new Map<string, string>()
  known.set(spec, keys)
  let key = keys.get(rest)
  if (key === undefined) {
    key = hashString(`${rest}${shapeOf(spec)}`).toString(36)
    keys.set(rest, key)
  }
  return key
}

/** What made the pod, without what tells its revisions and runs apart. */
function ownerOf({ metadata }: Pod): string {
  const owner = controllerOf({ metadata })
  if (owner === undefined) return `Pod/${metadata.generateName ?? metadata.name}`
  const hash = metadata.labels?.['pod-template-hash'] ?? ''
  const { kind, name } = owner
  if (hash !== '' && name.endsWith(`-${hash}`)) return `${kind}/${name.slice(0, -hash.length - 1)}`
  return `${kind}/${kind === 'Job' ? name.replace(cronSuffix, '') : name}`
}

/** Volume claims by name, where the name of the pod does not tell them apart. */
function claimsOf({ metadata, spec }: Pod): readonly string[] {
  return (spec.volumes ?? []).flatMap(({ persistentVolumeClaim, ephemeral, name }) => {
    if (ephemeral !== undefined) return [`ephemeral ${name}`]
    const claim = persistentVolumeClaim?.claimName
    return claim === undefined ? [] : [claim.replace(metadata.name, '*')]
  })
}

function shapeOf(spec: PodSpec): string {
  return JSON.stringify([
    Object.entries(podRequests(spec)).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    spec.nodeSelector,
    spec.affinity,
    spec.tolerations,
    spec.topologySpreadConstraints,
    spec.priority,
    spec.schedulerName,
    spec.hostNetwork,
    spec.resourceClaims,
    [...spec.containers, ...(spec.initContainers ?? [])].map(({ ports }) =>
      (ports ?? []).map(({ hostPort, hostIP, protocol }) => [hostPort, hostIP, protocol]),
    ),
  ])
}
