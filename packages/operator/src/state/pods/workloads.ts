/** Workloads: pods of one owner that are alike for the scheduler. */
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
/** Suffix of Jobs of a CronJob: the minute of the schedule. */
const cronSuffix = /-\d{8,10}$/

/** Memo by spec, which cached pods of one template share, and then by everything else. */
const known = new WeakMap<PodSpec, Map<string, string>>()

/**
 * A short key, equal for pods of one owner with the same requirements. It is stable across recreation of a pod, and across
 * a rollout that changes no requirements. The pod must be well-formed.
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

/** The owner, without suffixes for revisions and runs. */
function ownerOf({ metadata }: Pod): string {
  const owner = controllerOf({ metadata })
  if (owner === undefined) return `Pod/${metadata.generateName ?? metadata.name}`
  const hash = metadata.labels?.['pod-template-hash'] ?? ''
  const { kind, name } = owner
  if (hash !== '' && name.endsWith(`-${hash}`)) return `${kind}/${name.slice(0, -hash.length - 1)}`
  return `${kind}/${kind === 'Job' ? name.replace(cronSuffix, '') : name}`
}

/** Names of volume claims; the pod's own name in them is replaced. */
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
