/** Counts whether the scheduler put pods where they were nominated for. */
import type { Pod } from '@tenon/api'
import type { Logger } from '@tenon/runtime'
import type { PodPlan } from '../state/pods/pod-plans.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { PlacementGate } from './gate.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'nominations' | 'plans'>
  readonly placementGate: Pick<PlacementGate, 'isOn'>
  readonly metrics: Pick<Metrics, 'nominationOutcomes'>
  readonly logger: Logger
}

export class NominationOutcomes {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Counts how a pod's plan ended. */
  count(pod: Pod, plan: PodPlan | undefined): void {
    const { state, metrics, logger, placementGate } = this.#deps
    const written = state.plans.written(pod.metadata.uid ?? '')
    if (!placementGate.isOn || (plan === undefined && written === undefined)) return
    const node = pod.spec.nodeName ?? ''
    const isHonoured = written?.node === node
    const outcome = isHonoured ? 'honoured' : written?.isAccepted === true ? 'missed' : 'too_late'
    metrics.nominationOutcomes.inc({ outcome })
    const planned = plan === undefined ? written?.node : state.nominations.nodeFor(plan.target)?.metadata.name
    if (isHonoured || planned === node) return
    logger.info('pod bound elsewhere than planned', {
      Pod: { name: pod.metadata.name, namespace: pod.metadata.namespace },
      Node: { name: node },
      planned: planned ?? plan?.target.name ?? '',
      outcome,
    })
  }
}
