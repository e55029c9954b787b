/** What kube-scheduler makes of a plan once all nodes of the plan are there (reports-2.md 15). */
import type { Pod } from '@tenon/api'
import { schedule } from '../../scheduling/schedule.ts'
import type { SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import { nextLoop, withPods } from '../next-loop.test-support.ts'

/** The cluster after a plan. */
interface EndState {
  /** Input of the next decision: pods of the plan that stay pending are to be placed again. */
  readonly next: SchedulingInput
  readonly pending: readonly Pod[]
}

/**
 * Binds the placed pods: they are tried in the scheduler's order on all nodes, first on the one that is meant for them,
 * and again as others are bound.
 */
export function endStateOf(input: SchedulingInput, result: SchedulingResult): EndState {
  const bare = { ...result, placements: [], claims: result.claims.map((claim) => ({ ...claim, pods: [] })) }
  const end = nextLoop(input, bare)
  const planned = new Map([
    ...result.placements.map(({ pod, node }) => [pod.metadata.uid ?? '', node] as const),
    ...result.claims.flatMap(({ pods }, index) =>
      pods.map((pod) => [pod.metadata.uid ?? '', end.nodes[input.nodes.length + index]?.name ?? ''] as const),
    ),
  ])
  let state = end
  let pending = input.pods
    .filter(({ metadata }) => planned.has(metadata.uid ?? ''))
    .toSorted(inSchedulerOrder)
  for (;;) {
    const refused = pending.filter((pod) => {
      const node = bindingOf(pod, state, planned)
      if (node !== undefined) state = bound(state, pod, node)
      return node === undefined
    })
    if (refused.length === pending.length) {
      const { planned: _, ...next } = { ...state, pods: [...end.pods, ...refused] }
      return { next, pending: refused }
    }
    pending = refused
  }
}

function bindingOf(
  pod: Pod,
  state: SchedulingInput,
  planned: ReadonlyMap<string, string>,
): string | undefined {
  // What a taint only prefers refuses nobody.
  const nodes = state.nodes.map((node) => ({
    ...node,
    taints: node.taints.filter(({ effect }) => effect !== 'PreferNoSchedule'),
  }))
  return schedule({ ...state, nodes, planned, pods: [pod], pools: [] }).placements[0]?.node
}

/** The higher priority first, then the older, then by UID. */
function inSchedulerOrder(a: Pod, b: Pod): number {
  const key = ({ metadata }: Pod) => `${metadata.creationTimestamp ?? ''} ${metadata.uid}`
  return (b.spec.priority ?? 0) - (a.spec.priority ?? 0) || (key(a) < key(b) ? -1 : 1)
}

function bound(state: SchedulingInput, pod: Pod, node: string): SchedulingInput {
  const { topology, nodes } = state
  const others = topology.pods.filter(({ metadata }) => metadata.uid !== pod.metadata.uid)
  return {
    ...state,
    nodes: nodes.map((each) => (each.name === node ? withPods(each, [pod]) : each)),
    topology: { ...topology, pods: [...others, { ...pod, spec: { ...pod.spec, nodeName: node } }] },
  }
}
