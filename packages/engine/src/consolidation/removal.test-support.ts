/** Random clusters as questions about removing nodes see them, and as they are once the nodes are gone. */
import { difference } from '@tenon/api'
import type { PodOrigin, SchedulingInput } from '../input/input.ts'
import type { CandidateInput } from './question.ts'

/** UIDs of the pods on a node that would have to move. */
export function movingPods({ topology }: SchedulingInput, node: string): readonly string[] {
  return topology.pods
    .filter(
      ({ spec, status, metadata }) =>
        spec.nodeName === node &&
        metadata.deletionTimestamp === undefined &&
        status?.phase !== 'Succeeded' &&
        status?.phase !== 'Failed',
    )
    .map(({ metadata }) => metadata.uid ?? '')
}

/** The input with pods of these nodes among those to place, and with the origin they then have. */
export function withPodsOf(input: SchedulingInput, candidates: readonly CandidateInput[]): SchedulingInput {
  const uids = new Set(candidates.flatMap(({ pods }) => pods))
  const moving = input.topology.pods.filter(({ metadata }) => uids.has(metadata.uid ?? ''))
  const origins = new Map<string, PodOrigin>(input.origins)
  for (const uid of uids) origins.set(uid, 'candidate')
  return {
    ...input,
    pods: [...input.pods, ...moving],
    origins,
    policy: { ...input.policy, simulation: 'disruption' },
  }
}

/** The same cluster after the nodes are gone, their pods waiting. */
export function without(input: SchedulingInput, candidates: readonly CandidateInput[]): SchedulingInput {
  const gone = new Set(candidates.map(({ node }) => node))
  const withPods = withPodsOf(input, candidates)
  return {
    ...withPods,
    nodes: input.nodes.filter(({ name }) => !gone.has(name)),
    pools: input.pools.map((pool) => ({
      ...pool,
      usage: candidates
        .filter(({ nodePool }) => nodePool === pool.nodePool.metadata.name)
        .reduce((usage, { capacity }) => difference(usage, capacity), pool.usage),
    })),
    topology: {
      ...input.topology,
      nodes: new Map(
        [...input.topology.nodes].map(([name, node]) => [
          name,
          gone.has(name) ? { ...node, isCandidate: false } : node,
        ]),
      ),
    },
  }
}
