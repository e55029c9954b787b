/** Reduces objects to what is shown, so that a viewer of a hundred thousand pods needs little memory. */
import { type KubeObject, type Node, type NodeClaim, type NodePool, ownValue, type Pod } from '@tenon/api'
import { pauseAnnotations } from '@tenon/operator/objects'

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
      // Heartbeats of other conditions are not changes.
      ...(conditions !== undefined && { conditions: conditions.filter(({ type }) => type === 'Ready') }),
    },
  }
}

export function trimmedClaim(claim: NodeClaim): NodeClaim {
  return { ...claim, metadata: metadataOf(claim, true) }
}

export function trimmedPool(pool: NodePool): NodePool {
  const annotations = Object.fromEntries(
    Object.values(pauseAnnotations).flatMap((key) => {
      const text = ownValue(pool.metadata.annotations, key)
      return text === undefined ? [] : [[key, text]]
    }),
  )
  return { ...pool, metadata: { ...metadataOf(pool, true), annotations } }
}

/** Bounds memory: beyond this, equal parts are not shared. */
const mostShared = 20_000

/**
 * Keeps requests, owner and reason of a pending pod, and of other pods only what the totals of nodes need. Pods
 * of one owner share equal parts.
 */
export class PodTrimmer {
  readonly #shared = new Map<string, unknown>()

  trim(pod: Pod): Pod {
    const { nodeName = '' } = pod.spec
    return nodeName === '' ? waitingPod(pod) : this.#placedPod(pod, nodeName)
  }

  #placedPod({ apiVersion, kind, metadata, spec, status }: Pod, nodeName: string): Pod {
    const { name, namespace, uid, ownerReferences, labels } = metadata
    const hash = labels?.['pod-template-hash']
    const needed = neededOf(spec)
    const owners = ownerReferences?.filter(({ controller }) => controller === true)
    return {
      apiVersion,
      kind,
      metadata: {
        name,
        ...(namespace !== undefined && { namespace: this.#same(namespace) }),
        ...(uid !== undefined && { uid }),
        ...(owners !== undefined && { ownerReferences: this.#same(owners) }),
        ...(hash !== undefined && { labels: this.#same({ 'pod-template-hash': hash }) }),
      },
      spec: { nodeName: this.#same(nodeName), ...this.#same(needed) },
      ...(status !== undefined && { status: this.#same(heldOf(status)) }),
    }
  }

  /** Returns a shared instance of equal parts. */
  #same<T extends string | object>(part: T): T {
    const text = typeof part === 'string' ? part : JSON.stringify(part)
    const held = this.#shared.get(text)
    if (held !== undefined) return held as T
    if (this.#shared.size < mostShared) this.#shared.set(text, part)
    return part
  }
}

function waitingPod(pod: Pod): Pod {
  const { apiVersion, kind, spec, status } = pod
  const { ownerReferences } = pod.metadata
  return {
    apiVersion,
    kind,
    metadata: { ...metadataOf(pod, true), ...(ownerReferences !== undefined && { ownerReferences }) },
    spec: neededOf(spec),
    status: {
      ...(status?.phase !== undefined && { phase: status.phase }),
      ...(status?.conditions !== undefined && { conditions: status.conditions }),
      ...(status?.nominatedNodeName !== undefined && { nominatedNodeName: status.nominatedNodeName }),
    },
  }
}

/** The resources in the status of the pod and its containers, which differ from the requests during an in-place resize. */
function heldOf({
  phase,
  conditions,
  containerStatuses,
  initContainerStatuses,
  resources: ofPod,
  allocatedResources: allocatedToPod,
}: NonNullable<Pod['status']>): NonNullable<Pod['status']> {
  const held = (all: NonNullable<typeof containerStatuses>) =>
    all.flatMap(({ name, resources, allocatedResources }) =>
      resources === undefined
        ? []
        : [
            {
              name,
              resources: { ...(resources.requests !== undefined && { requests: resources.requests }) },
              ...(allocatedResources !== undefined && { allocatedResources }),
            },
          ],
    )
  const resize = conditions?.find(({ type }) => type === 'PodResizePending')
  return {
    ...(phase !== undefined && { phase }),
    ...(resize !== undefined && {
      conditions: [
        {
          type: resize.type,
          status: resize.status,
          ...(resize.reason !== undefined && { reason: resize.reason }),
        },
      ],
    }),
    ...(containerStatuses !== undefined && { containerStatuses: held(containerStatuses) }),
    ...(initContainerStatuses !== undefined && { initContainerStatuses: held(initContainerStatuses) }),
    ...(ofPod !== undefined && {
      resources: { ...(ofPod.requests !== undefined && { requests: ofPod.requests }) },
    }),
    ...(allocatedToPod !== undefined && { allocatedResources: allocatedToPod }),
  }
}

/** The fields that requests are computed from. */
function neededOf({ containers, initContainers, overhead, ...rest }: Pod['spec']): Pod['spec'] {
  const needed = (all: typeof containers) =>
    all.map(({ name, resources, ...container }) => ({
      name,
      ...(resources?.requests !== undefined && { resources: { requests: resources.requests } }),
      ...('restartPolicy' in container && { restartPolicy: container.restartPolicy }),
    }))
  return {
    containers: needed(containers),
    ...(initContainers !== undefined && { initContainers: needed(initContainers) }),
    ...(overhead !== undefined && { overhead }),
    ...('resources' in rest && { resources: rest.resources }),
  }
}
