/** What the Kubernetes scheduler says of pods that it refuses, and whether that is about their node. */
import { isConditionTrue, kinds, type Pod } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import type { ClusterState } from '../../state/cluster-state.ts'
import { isActive } from '../../state/pods/pods.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'list'>
  readonly state: Pick<ClusterState, 'claimOf' | 'nominations' | 'plans' | 'podGroups'>
}

export class PodRefusals {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** What the scheduler says of the pod now, asked of the API server; undefined when it does not refuse it any more. */
  async wordsOf(pod: Pod, signal: AbortSignal): Promise<string | undefined> {
    const { name, namespace = '', uid } = pod.metadata
    const { client } = this.#deps
    // As a list, which is what this process has the right to read pods by.
    const [now] = await client
      .list(kinds.pod, { namespace, fieldSelector: `metadata.name=${name}`, signal })
      .catch((error: unknown): Pod[] => {
        if (!isKubeError(error)) throw error
        // It is asked again before the next decision.
        return []
      })
    if (now === undefined || now.metadata.uid !== uid || (now.spec.nodeName ?? '') !== '' || !isActive(now))
      return undefined
    const condition = now.status?.conditions?.find(({ type }) => type === 'PodScheduled')
    if (condition?.status !== 'False' || condition.reason !== 'Unschedulable') return undefined
    return condition.message ?? ''
  }

  /**
   * Whether the pod waits for others of its group that have no place on a node that is open: that it is refused says
   * nothing about its own node then (gangs.md 5.4).
   */
  isOfShortGroup(pod: Pod): boolean {
    const { podGroups } = this.#deps.state
    const ref = podGroups.of(pod)
    if (ref === undefined) return false
    const placed = podGroups.members(ref.id).filter((member) => this.#hasOpenNode(member))
    return placed.length < (podGroups.get(ref)?.minCount ?? 0)
  }

  #hasOpenNode({ metadata: { uid = '' }, spec }: Pod): boolean {
    if ((spec.nodeName ?? '') !== '') return true
    const { state } = this.#deps
    const plan = state.plans.get(uid)
    const node = plan && state.nominations.nodeFor(plan.target)
    const claim = node && state.claimOf(node)
    return node !== undefined && (claim === undefined || isConditionTrue(claim, 'Initialized'))
  }
}
