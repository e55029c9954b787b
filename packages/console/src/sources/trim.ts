/** What of objects is kept: a viewer of a hundred thousand pods holds little of each. */
import type { KubeObject, Node, NodeClaim, NodePool, Pod } from '@tenon/api'

type Metadata = KubeObject['metadata']

function metadataOf({ metadata }: KubeObject, hasLabels: boolean): Metadata {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
    ...(creationTimestamp !== undefined && { creationTimestamp }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(hasLabels && metadata.labels !== undefined && { labels: metadata.labels }),
  }
}

export function trimmedNode({ apiVersion, kind, spec, status, ...object }: Node): Node {
  const { providerID, unschedulable } = spec ?? {}
  const { allocatable, conditions } = status ?? {}
  return {
    apiVersion,
    kind,
    metadata: metadataOf({ apiVersion, kind, ...object }, true),
    spec: {
      ...(providerID !== undefined && { providerID }),
      ...(unschedulable !== undefined && { unschedulable }),
    },
    status: {
      ...(allocatable !== undefined && { allocatable }),
      // Heartbeats of other conditions are no news.
      ...(conditions !== undefined && { conditions: conditions.filter(({ type }) => type === 'Ready') }),
    },
  }
}

export function trimmedClaim(claim: NodeClaim): NodeClaim {
  return { ...claim, metadata: metadataOf(claim, true) }
}

export function trimmedPool(pool: NodePool): NodePool {
  return { ...pool, metadata: metadataOf(pool, true) }
}

/** Of a pod with a node, its requests and to whom it belongs; of one that waits, also why. */
export function trimmedPod(pod: Pod, held?: Pod): Pod {
  const { apiVersion, kind, spec, status } = pod
  const isWaiting = spec.nodeName === undefined || spec.nodeName === ''
  const { ownerReferences, labels } = pod.metadata
  const hash = labels?.['pod-template-hash']
  const hasSameSpec = held !== undefined && held.spec.nodeName === spec.nodeName
  return {
    apiVersion,
    kind,
    metadata: {
      ...metadataOf(pod, isWaiting),
      ...(ownerReferences !== undefined && {
        ownerReferences: held?.metadata.ownerReferences ?? ownerReferences,
      }),
      ...(!isWaiting && hash !== undefined && { labels: { 'pod-template-hash': hash } }),
    },
    spec: hasSameSpec && status?.containerStatuses === undefined ? held.spec : specOf(spec),
    status: {
      ...(status?.phase !== undefined && { phase: status.phase }),
      ...(isWaiting && status?.conditions !== undefined && { conditions: status.conditions }),
      ...(status?.nominatedNodeName !== undefined && { nominatedNodeName: status.nominatedNodeName }),
    },
  }
}

function specOf({ nodeName, containers, initContainers, overhead, ...rest }: Pod['spec']): Pod['spec'] {
  const needed = (all: typeof containers) =>
    all.map(({ name, resources, ...container }) => ({
      name,
      ...(resources?.requests !== undefined && { resources: { requests: resources.requests } }),
      ...('restartPolicy' in container && { restartPolicy: container.restartPolicy }),
    }))
  return {
    ...(nodeName !== undefined && { nodeName }),
    containers: needed(containers),
    ...(initContainers !== undefined && { initContainers: needed(initContainers) }),
    ...(overhead !== undefined && { overhead }),
    ...('resources' in rest && { resources: rest.resources }),
  }
}
