import { kinds } from '@tenon/api'
import type { Random } from '@tenon/runtime'
import { type FilterName, type PodCycle, unavailableMessage } from '@tenon/filters'
import type { LocalApi } from '../contract.ts'
import type { ClaimWriter } from './devices/claim-writer.ts'
import type { Diagnosis, Placer } from './placement.ts'
import { findPreemption } from './preemption.ts'
import type { Nominations } from './queue/nominations.ts'
import type { OutcomeWriter } from './queue/outcome-writer.ts'

/** The result for a pod that fits on no node. */
export interface Refusal {
  readonly message: string
  readonly rejectedBy: ReadonlySet<FilterName>
  /** The node on which pods are preempted for it. */
  readonly nodeName: string | undefined
  /** Whether preemption has begun, was in progress already, or is not possible. */
  readonly preemption: 'begun' | 'under way' | 'none'
  /** Whether lower-priority pods lost their nominations. */
  readonly freesRoom: boolean
}

interface Dependencies {
  readonly api: LocalApi
  readonly random: Random
  readonly placer: Placer
  readonly nominations: Nominations
  readonly writer: OutcomeWriter
  readonly claims: ClaimWriter
}

/** Reports why a pod fits on no node, and preempts lower-priority ones for it. */
export class Refusals {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Looks for pods to preempt, and deletes them. */
  refuse(cycle: PodCycle, diagnosis: Diagnosis): Refusal {
    const { api, random, placer, nominations, writer, claims } = this.#deps
    const { facts } = cycle
    const { message: text, rejectedBy } = refusalText(cycle, diagnosis)
    // Allocated claims that no pod uses may bind the pod to nodes without room. Elsewhere other devices may
    // be free.
    claims.deallocate(facts, cycle.devicePlan.allocated)
    const budgets = api.list(kinds.podDisruptionBudget)
    const preemption = findPreemption(cycle, diagnosis, placer, budgets, random)
    if (preemption.kind === 'none') {
      const message = diagnosis.total === 0 ? text : `${text} preemption: ${preemption.message}`
      const nodeName = nominations.nodeOf(facts.uid)
      return {
        message,
        rejectedBy,
        nodeName,
        preemption: preemption.isUnderWay ? 'under way' : 'none',
        freesRoom: false,
      }
    }
    const { entry, victims } = preemption.candidate
    for (const victim of victims) writer.preempt(victim, facts, entry.name)
    const behind = nominations.behind(facts, entry.name)
    for (const other of behind) {
      nominations.remove(other.uid)
      writer.clearNomination(other)
    }
    return {
      message: text,
      rejectedBy,
      nodeName: entry.name,
      preemption: 'begun',
      freesRoom: behind.length > 0,
    }
  }
}

/** Why the pod fits on no node, worded as in `kubectl describe`. */
export function refusalText(cycle: PodCycle, diagnosis: Diagnosis): Pick<Refusal, 'message' | 'rejectedBy'> {
  const rejections = [...diagnosis.rejections.values()]
  const rejectedBy = new Set(rejections.map((one) => one.filter))
  const { early } = cycle
  const message =
    early !== undefined && diagnosis.total > 0
      ? `0/${diagnosis.total} nodes are available: ${early.reasons.join(', ')}.`
      : unavailableMessage(
          diagnosis.total,
          rejections.map((one) => one.reasons),
        )
  return { message, rejectedBy }
}
