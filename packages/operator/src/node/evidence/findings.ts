/** What follows once a node proved useless for a pod: it is noted, told, and kept for nobody. */
import { conditionOf, labels, type NodeClaim, type Pod } from '@tenon/api'
import type { PlanTarget } from '../../cluster/pods/pod-plans.ts'
import { workloadOf } from '../../cluster/pods/workloads.ts'
import type { EvidenceReport } from './evidence-report.ts'
import type { Place, Verdict } from './place.ts'
import type { PlaceVerdicts } from './place-verdicts.ts'
import type { Shortfalls } from './shortfalls.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'evidence' | 'isWellFormed' | 'plans' | 'pods'>
  readonly verdicts: PlaceVerdicts
  readonly shortfalls: Shortfalls
  readonly report: EvidenceReport
}

export class EvidenceFindings {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * @param like pods of the same workload.
   * @param words what the scheduler says of the pod.
   */
  async note(
    { claim, node }: Place,
    { pod, like }: { readonly pod: Pod; readonly like: readonly Pod[] },
    verdict: Verdict & { readonly kind: 'short' | 'refused' },
    words: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { report, shortfalls, state, verdicts } = this.#deps
    const names = verdict.kind === 'short' ? verdict.names : []
    const margins = names.length === 0 ? {} : await shortfalls.marginsOf(claim, node, names, signal)
    const entry = state.evidence.useless({
      pod,
      nodePool: claim.metadata.labels?.[labels.nodePool] ?? '',
      node: node.metadata.name,
      claim: claim.metadata.name,
      cause: verdict.kind,
      words,
      margins,
      knowledge: verdicts.knowledgeOf(pod, like, node),
      boughtMs: boughtMs(claim),
    })
    this.#release(entry.workload, { kind: 'claim', name: entry.claim })
    report.useless(entry, pod, names)
  }

  /** Nobody waits for this node any more: it is not kept for anybody. */
  #release(workload: string, target: PlanTarget): void {
    const { plans, pods } = this.#deps.state
    plans.giveUp(
      plans.podsOf(target).filter((uid) => {
        const pod = pods.unplaced(uid)
        return pod !== undefined && workloadOf(pod) === workload
      }),
    )
  }

  /**
   * A claim ends whose node never offered what its pods ask for: the next one would not either.
   * @param workloads that it was launched for, by key.
   */
  unborn(claim: NodeClaim, workloads: ReadonlyMap<string, number>): void {
    if (conditionOf(claim, 'Initialized')?.reason !== 'ResourceNotRegistered') return
    const { report, state } = this.#deps
    const told = new Set<string>()
    for (const pod of state.pods.waiting()) {
      if (!state.isWellFormed(pod)) continue
      const workload = workloadOf(pod)
      if (!workloads.has(workload) || told.has(workload)) continue
      told.add(workload)
      const entry = state.evidence.useless({
        pod,
        nodePool: claim.metadata.labels?.[labels.nodePool] ?? '',
        node: claim.status?.nodeName ?? '',
        claim: claim.metadata.name,
        cause: 'refused',
        words: conditionOf(claim, 'Initialized')?.message ?? '',
        margins: {},
        knowledge: 'none',
        boughtMs: boughtMs(claim),
      })
      report.useless(entry, pod, [])
    }
  }
}

/** When a claim was made; Unix milliseconds. */
function boughtMs({ metadata }: NodeClaim): number | undefined {
  const ms = Date.parse(metadata.creationTimestamp ?? '')
  return Number.isNaN(ms) ? undefined : ms
}
