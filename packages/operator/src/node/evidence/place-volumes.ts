/** Whether the volumes of pods keep them from nodes. */
import type { Node, Pod } from '@tenon/api'
import { attachedClaims, resolveVolumes, volumesAdmit, withinVolumeLimits } from '@tenon/engine'
import type { NodeStorage } from '../../cluster/nodes/state-node.ts'
import { isDaemonPod } from '../../cluster/pods/pods.ts'
import { eligibilityPolicy, type PodRules } from '../../provisioning/input/eligible-pods.ts'
import { nodeStorage, volumeLookups, type VolumeCaches } from '../../provisioning/input/volume-lookups.ts'
import type { Place } from './place.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: VolumeCaches
  readonly state: Pick<ClusterState, 'pods'>
  readonly provider: PodRules
}

/** Set on a volume claim by the scheduler, while the volume is made for a node. */
const selectedNodeAnnotation = 'volume.kubernetes.io/selected-node'

export class PlaceVolumes {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Whether a volume of the pod is being made for the node that the scheduler has chosen. */
  areAwaited({ metadata, spec }: Pod): boolean {
    const { persistentVolumeClaims } = this.#deps.caches
    return (spec.volumes ?? []).some(({ persistentVolumeClaim, ephemeral, name }) => {
      const claim = persistentVolumeClaim?.claimName ?? (ephemeral && `${metadata.name}-${name}`)
      const found =
        claim === undefined
          ? undefined
          : persistentVolumeClaims.get({ namespace: metadata.namespace ?? '', name: claim })
      return (
        found !== undefined &&
        (found.spec.volumeName ?? '') === '' &&
        (found.metadata.annotations?.[selectedNodeAnnotation] ?? '') !== ''
      )
    })
  }

  /** Whether the node could attach the volumes of the pod, but not beside those of the pods that it has. */
  areFull(pod: Pod, { node, storage }: Place): boolean {
    if ((pod.spec.volumes ?? []).length === 0) return false
    const { podsWithVolumes } = this.#deps.state.pods.useOf(node.metadata.name)
    storage.all ??= this.#storageOf(node, podsWithVolumes)
    if (this.#attaches(pod, storage.all)) return false
    storage.daemons ??= this.#storageOf(node, podsWithVolumes.filter(isDaemonPod))
    return this.#attaches(pod, storage.daemons)
  }

  /** Whether nodes like this one attach the volumes of the pod, if they have no others. */
  fit(pod: Pod, node: Node): boolean {
    return this.#attaches(pod, this.#storageOf(node, []))
  }

  #storageOf({ metadata }: Node, pods: readonly Pod[]): NodeStorage {
    const { caches } = this.#deps
    return nodeStorage(caches.csiNodes.get({ name: metadata.name }), pods, volumeLookups(caches))
  }

  #attaches(pod: Pod, { volumeLimits = {}, volumesInUse = {} }: NodeStorage): boolean {
    const claims = attachedClaims(pod, volumeLookups(this.#deps.caches))
    return withinVolumeLimits(volumeLimits, volumesInUse, claims)
  }

  /**
   * Whether a volume of the pod cannot be reached from the node. That came to be after the launch, which knew the
   * volumes of its time: another pod that shares the claim was first.
   */
  isElsewhere(pod: Pod, { metadata }: Node): boolean {
    const { caches, provider } = this.#deps
    const resolved = resolveVolumes(pod, volumeLookups(caches), eligibilityPolicy(provider))
    return !('kind' in resolved) && !volumesAdmit(resolved, metadata.labels ?? {})
  }
}
