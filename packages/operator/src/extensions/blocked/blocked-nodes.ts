/** `disruption.blocked`: counts nodes that PodDisruptionBudgets hold for good (wanted.md 3). */
import type { SingletonSpec } from '../../controller.ts'
import type { NodeExplainer } from '../../disruption/explain.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

const periodMs = 60_000

export function blockedNodes(
  explainer: NodeExplainer,
  { podsOnNodes }: Pick<ClusterState, 'podsOnNodes'>,
  { nodesBlocked }: Pick<Metrics, 'nodesBlocked'>,
): SingletonSpec {
  return {
    name: 'disruption.blocked',
    async run(signal) {
      // Most nodes have no such pod, and are not looked at any further.
      const decisions = await explainer.explain(
        signal,
        ({ node }) => node !== undefined && podsOnNodes.of(node.metadata.name).blocking !== undefined,
      )
      for (const reason of ['never_allows', 'several_budgets'] as const)
        nodesBlocked.set({ reason }, decisions.filter(({ stuck }) => stuck === reason).length)
      return { kind: 'after', delayMs: periodMs }
    },
  }
}
