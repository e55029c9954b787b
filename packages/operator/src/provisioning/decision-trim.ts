/** Takes out of a decision what is better left for the next one. */
import type { Pod } from '@tenon/api'
import type { SchedulingResult } from '@tenon/engine'
import type { Logger } from '@tenon/runtime'
import type { LaunchGuard } from '../cloud/launch-guard.ts'
import type { StoredPods } from '../cluster/pods/stored-pods.ts'
import { workloadOf } from '../cluster/pods/workloads.ts'
import type { NodeEvidenceJudge, OnTrial } from '../node/evidence/judge.ts'
import type { GatheredInput } from './input/scheduling-input.ts'
import { podList } from './reports/scheduling-report.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  /** Absent where it is not looked at what becomes of nodes. */
  readonly judge: Pick<NodeEvidenceJudge, 'decided'> | undefined
  readonly launchGuard: Pick<LaunchGuard, 'withoutCrowds'>
  readonly storedPods: StoredPods
  readonly state: Pick<ClusterState, 'plans'>
  readonly logger: Logger
}

export class DecisionTrim {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  of(input: GatheredInput, whole: SchedulingResult, onTrial: OnTrial): SchedulingResult {
    this.#deps.judge?.decided(whole)
    return this.#withoutTrials(this.#withoutCrowds(input, whole), onTrial)
  }

  /** Leaves pods for later whose claims would all stand or fall with one that is on trial. */
  #withoutCrowds({ pools }: GatheredInput, result: SchedulingResult): SchedulingResult {
    const { launchGuard } = this.#deps
    const types = new Map(pools.map(({ nodePool, instanceTypes }) => [nodePool.metadata.name, instanceTypes]))
    const claims = launchGuard.withoutCrowds(result.claims, types)
    if (claims.length === result.claims.length) return result
    const kept = new Set(claims)
    const later = result.claims.filter((claim) => !kept.has(claim)).flatMap(({ pods }) => pods)
    return { ...result, claims, undecided: [...result.undecided, ...later] }
  }

  /** Leaves pods for later whose own nodes are there already, and may yet take them. */
  #withoutTrials(result: SchedulingResult, onTrial: OnTrial): SchedulingResult {
    if (onTrial.size === 0) return result
    const wanted = new Map<string, number>()
    for (const { pods } of result.claims)
      for (const pod of pods.map((each) => this.#deps.storedPods.of(each))) {
        const workload = workloadOf(pod)
        wanted.set(workload, (wanted.get(workload) ?? 0) + 1)
      }
    const isOnTrial = (pod: Pod) => {
      const workload = workloadOf(this.#deps.storedPods.of(pod))
      return (wanted.get(workload) ?? 0) <= (onTrial.get(workload) ?? 0)
    }
    const claims = result.claims.filter(({ pods }) => !pods.every(isOnTrial))
    if (claims.length === result.claims.length) return result
    const kept = new Set(claims)
    const later = result.claims.filter((claim) => !kept.has(claim)).flatMap(({ pods }) => pods)
    this.#deps.logger.info('pods wait for nodes that were launched for them; no others are launched yet', {
      Pods: podList(later),
    })
    // Their node has not the room that was planned: nominated for it still, they would keep it from the others.
    this.#deps.state.plans.giveUp(later.map(({ metadata }) => metadata.uid ?? ''))
    return { ...result, claims }
  }
}
