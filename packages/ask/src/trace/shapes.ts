/**
 * Reduces a pod to its shape, which all pods of a ReplicaSet share. Volumes are omitted, so that a replay may
 * place a pod in any zone.
 */
import { createHash } from 'node:crypto'
import { type Container, controllerOf, ownValue, type Pod, type PodSpec } from '@tenon/api'

/** Labels whose value differs between the pods of a workload. */
const labelsOfOne: ReadonlySet<string> = new Set([
  'apps.kubernetes.io/pod-index',
  'batch.kubernetes.io/job-completion-index',
  'controller-revision-hash',
  'pod-template-generation',
  'statefulset.kubernetes.io/pod-name',
])
/** Annotations that decisions read. */
const keptAnnotations = ['karpenter.sh/do-not-disrupt', 'controller.kubernetes.io/pod-deletion-cost'] as const
/** Admission adds them to every pod. */
const defaultTolerations: ReadonlySet<string> = new Set([
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
])

/** The pod without its identity and fields that no decision reads: environment, command, image. */
export function shapeOf(pod: Pod): Pod {
  const { namespace, labels = {}, annotations } = pod.metadata
  const owner = controllerOf(pod)
  const kept = Object.fromEntries(
    keptAnnotations.flatMap((key) => {
      const value = ownValue(annotations, key)
      return value === undefined ? [] : [[key, value]]
    }),
  )
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: owner?.name ?? pod.metadata.name,
      ...(namespace !== undefined && { namespace }),
      labels: Object.fromEntries(Object.entries(labels).filter(([key]) => !labelsOfOne.has(key))),
      ...(Object.keys(kept).length > 0 && { annotations: kept }),
      ...(owner && { ownerReferences: [owner] }),
    },
    spec: specOf(pod.spec),
  }
}

/** The fields of the spec that decisions read. */
export function specOf(spec: PodSpec): PodSpec {
  const {
    nodeSelector,
    affinity,
    tolerations,
    topologySpreadConstraints,
    containers,
    initContainers,
    overhead,
    runtimeClassName,
    resources,
    priorityClassName,
    schedulerName,
    terminationGracePeriodSeconds,
    hostNetwork,
  } = spec
  const tolerated = tolerations?.filter(({ key }) => !defaultTolerations.has(key ?? ''))
  return {
    containers: containers.map(containerOf),
    ...(initContainers && { initContainers: initContainers.map(containerOf) }),
    ...(nodeSelector && { nodeSelector }),
    ...(affinity && { affinity }),
    ...(tolerated !== undefined && tolerated.length > 0 && { tolerations: tolerated }),
    ...(topologySpreadConstraints && { topologySpreadConstraints }),
    ...(overhead && { overhead }),
    ...(runtimeClassName !== undefined && { runtimeClassName }),
    ...(resources && { resources }),
    ...(priorityClassName !== undefined && { priorityClassName }),
    ...(schedulerName !== undefined && { schedulerName }),
    ...(terminationGracePeriodSeconds !== undefined && { terminationGracePeriodSeconds }),
    ...(hostNetwork !== undefined && { hostNetwork }),
  }
}

function containerOf({ name, resources, restartPolicy, ports }: Container): Container {
  const hostPorts = ports?.filter(({ hostPort }) => hostPort !== undefined)
  return {
    name,
    // The API server requires one, and nobody reads it.
    image: 'recorded',
    ...(resources && { resources }),
    ...(restartPolicy !== undefined && { restartPolicy }),
    ...(hostPorts !== undefined && hostPorts.length > 0 && { ports: hostPorts }),
  }
}

/** A digest of sixty bits: enough to distinguish the pods of a cluster. */
export function digestOf(uid: string): string {
  return createHash('sha256').update(uid).digest('base64url').slice(0, 10)
}
