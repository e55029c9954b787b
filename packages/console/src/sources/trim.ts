/** What of objects is kept: a viewer of a hundred thousand pods holds little of each. */
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
      // Heartbeats of other conditions are no news.
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

/** More different parts than that are not shared. */
const mostShared = 20_000

/**
 * Of a pod that waits for a node: its requests, to whom it belongs, and why it waits. Of one that has a node, what the
 * sums over nodes need, and no more: pods of one owner share it.
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

  /** One of all that are equal. */
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

/** What containers hold beside what they ask for, which tells of a resize in place. */
function heldOf({
  phase,
  conditions,
  containerStatuses,
  initContainerStatuses,
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
  }
}

/** What requests are made of. */
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
