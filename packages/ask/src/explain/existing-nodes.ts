/** Why existing nodes do not fit a pod, in the words of kube-scheduler. */
import type { Pod } from '@tenon/api'
import {
  DeviceIndex,
  PodReader,
  type Rejection,
  Snapshot,
  unavailableMessage,
  VolumeIndex,
} from '@tenon/filters'
import type { OperatorCore } from '@tenon/operator'

/** Which nodes fit a pod, and why the others do not. */
export interface NodesAnswer {
  /** Names of nodes that fit. */
  readonly fitting: readonly string[]
  /** `0/5 nodes are available: 2 Insufficient cpu, …`; absent if a node fits. */
  readonly message?: string
}

/** Runs the scheduler's filters on the nodes and pods of a snapshot. */
export class ExistingNodes {
  readonly #filters: Snapshot
  readonly #count: number
  /** Results by the fields that filters read: pods of a workload share one. */
  readonly #known = new Map<string, NodesAnswer>()

  constructor({ caches }: Pick<OperatorCore, 'caches'>) {
    const namespaces = new Map(
      caches.namespaces.list().map(({ metadata }) => [metadata.name, metadata.labels ?? {}]),
    )
    const devices = deviceIndexOf(caches)
    this.#filters = new Snapshot({
      reader: new PodReader(),
      volumes: volumesOf(caches),
      namespaces,
      ...(devices !== undefined && { devices }),
    })
    const nodes = caches.nodes.list()
    this.#count = nodes.length
    for (const node of nodes) this.#filters.setNode(node)
    for (const pod of caches.pods.list()) {
      const { nodeName = '' } = pod.spec
      const hasEnded = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
      if (nodeName !== '' && !hasEnded && this.#filters.node(nodeName) !== undefined)
        this.#filters.assign(pod, nodeName)
    }
  }

  answer(pod: Pod): NodesAnswer {
    const key = seenOf(pod)
    const answer = this.#known.get(key) ?? this.#ask(pod)
    this.#known.set(key, answer)
    return answer
  }

  #ask(pod: Pod): NodesAnswer {
    const fitting: string[] = []
    const rejections: Rejection[] = []
    for (const entry of this.#filters.nodes) {
      const rejection = this.#filters.check(pod, entry)
      if (rejection === undefined) fitting.push(entry.name)
      else rejections.push(rejection)
    }
    const message = unavailableMessage(
      this.#count,
      rejections.map(({ reasons }) => reasons),
    )
    return fitting.length > 0 ? { fitting: fitting.toSorted() } : { fitting, message }
  }
}

/** Undefined where devices are not served. A snapshot does not say of which version its server was. */
function deviceIndexOf({
  deviceClasses,
  resourceClaims,
  resourceSlices,
}: OperatorCore['caches']): DeviceIndex | undefined {
  if (deviceClasses === undefined || resourceClaims === undefined || resourceSlices === undefined)
    return undefined
  const index = new DeviceIndex(() => true)
  for (const slice of resourceSlices.list()) index.setSlice(slice)
  for (const each of deviceClasses.list()) index.setClass(each)
  for (const claim of resourceClaims.list()) index.setClaim(claim)
  return index
}

function volumesOf(caches: OperatorCore['caches']): VolumeIndex {
  const volumes = new VolumeIndex()
  for (const claim of caches.persistentVolumeClaims.list()) volumes.setClaim(claim)
  for (const volume of caches.persistentVolumes.list()) volumes.setVolume(volume)
  for (const storageClass of caches.storageClasses.list()) volumes.setClass(storageClass)
  for (const csiNode of caches.csiNodes.list()) volumes.setCsiNode(csiNode)
  for (const csiDriver of caches.csiDrivers?.list() ?? []) volumes.setCsiDriver(csiDriver)
  for (const capacity of caches.csiStorageCapacities?.list() ?? []) volumes.setCapacity(capacity)
  for (const attachment of caches.volumeAttachments.list()) volumes.setAttachment(attachment)
  return volumes
}

/** The fields of an unscheduled pod that filters read. Ephemeral volumes are named after the pod. */
function seenOf({ metadata, spec, status }: Pod): string {
  const { labels, name, namespace, ownerReferences } = metadata
  const makesVolumes = spec.volumes?.some(({ ephemeral }) => ephemeral !== undefined) === true
  const { nominatedNodeName, extendedResourceClaimStatus } = status ?? {}
  const isOwn = makesVolumes || spec.resourceClaims !== undefined || extendedResourceClaimStatus !== undefined
  const own = isOwn ? name : ''
  return JSON.stringify([namespace, labels, ownerReferences, spec, nominatedNodeName, own])
}
