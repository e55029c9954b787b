/** The nodes of claims, and the pods that they serve. */
import { isConditionTrue, type Node, type NodeClaim, type Pod } from '@tenon/api'
import type { Change } from '@tenon/kube'
import type { Caches } from '../../cluster/caches.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import { transitionMs } from '../../cluster/nodes/state-node.ts'
import { isDaemonPod } from '../../cluster/pods/pods.ts'
import { workloadOf } from '../../cluster/pods/workloads.ts'
import { groundOf } from './ground.ts'
import type { Place } from './place.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodeClasses' | 'nodePools'>
  readonly state: Pick<ClusterState, 'isWellFormed' | 'nodeOf' | 'podsOn'>
}

export class Places {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Calls back for each claim that changes until the returned function is called. */
  onClaim(listener: (change: Change<NodeClaim>) => void): () => void {
    return this.#deps.caches.nodeClaims.onChange(listener)
  }

  /** What NodePools and node classes ask for, as in {@link groundOf}. */
  ground(): string {
    return groundOf(this.#deps)
  }

  /** The node of a claim; undefined while there is none, and once it goes. */
  of(name: string): Place | undefined {
    const { caches, state } = this.#deps
    const claim = caches.nodeClaims.get({ name })
    const node = claim === undefined ? undefined : state.nodeOf(claim)
    if (claim === undefined || node === undefined) return undefined
    if (node.metadata.deletionTimestamp !== undefined || isConditionTrue(claim, 'InstanceTerminating'))
      return undefined
    const eventMs = Date.parse(claim.status?.lastPodEventTime ?? '') || 0
    const openedMs = transitionMs(claim, 'Initialized') ?? 0
    return { claim, node, openedMs, changedMs: Math.max(openedMs, eventMs), storage: {} }
  }

  /** When pods last came to the node, by key of their workload; Unix milliseconds, 0 where it does not show. */
  served({ metadata }: Node): ReadonlyMap<string, number> {
    const { state } = this.#deps
    const served = new Map<string, number>()
    for (const pod of state.podsOn(metadata.name)) {
      if (!state.isWellFormed(pod) || isDaemonPod(pod)) continue
      const workload = workloadOf(pod)
      served.set(workload, Math.max(boundMs(pod), served.get(workload) ?? 0))
    }
    return served
  }
}

/** When a pod got its node; Unix milliseconds, 0 where it does not show. */
function boundMs({ status }: Pod): number {
  const scheduled = status?.conditions?.find(
    ({ type, status: isSo }) => type === 'PodScheduled' && isSo === 'True',
  )
  return Date.parse(scheduled?.lastTransitionTime ?? status?.startTime ?? '') || 0
}
