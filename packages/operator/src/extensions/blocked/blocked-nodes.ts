/** `disruption.blocked`: counts nodes that PodDisruptionBudgets hold for good (wanted.md 3). */
import type { SingletonSpec } from '../../controller.ts'
import type { NodeExplainer } from '../../disruption/explain.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { inSlices, type Slicing } from '@tenon/runtime'

interface Dependencies {
  readonly state: Pick<ClusterState, 'podsOnNodes' | 'stateNodes'>
  readonly metrics: Pick<Metrics, 'nodesBlocked'>
  readonly slicing: Slicing
}

const periodMs = 60_000

export function blockedNodes(
  explainer: NodeExplainer,
  { metrics, slicing, state }: Dependencies,
): SingletonSpec {
  const { podsOnNodes } = state
  return {
    name: 'disruption.blocked',
    async run(signal) {
      await inSlices(podsOnNodes.reading(state.stateNodes()), slicing)
      // Most nodes have no such pod, and are not looked at any further.
      const decisions = await explainer.explain(
        signal,
        ({ node }) => node !== undefined && podsOnNodes.of(node.metadata.name).blocking !== undefined,
      )
      for (const reason of ['never_allows', 'several_budgets'] as const)
        metrics.nodesBlocked.set({ reason }, decisions.filter(({ stuck }) => stuck === reason).length)
      return { kind: 'after', delayMs: periodMs }
    },
  }
}
