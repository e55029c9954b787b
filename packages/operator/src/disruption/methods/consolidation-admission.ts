/** Which nodes consolidation is about; the others are told why not. */
import type { StateNode } from '../../state/nodes/state-node.ts'
import type { Catalogue } from '../catalogue.ts'
import type { WholeUnits } from '../whole-units.ts'
import type { NodeClaim } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import { type Candidate, type GroupScope, isEmpty } from '../candidates.ts'
import { type ConsolidationPolicy, unconsolidatable } from '../policy.ts'
import { type DisruptionRemarks, unconsolidatableMs } from '../remarks.ts'

/** What this file works with. */
interface Dependencies {
  readonly policy: ConsolidationPolicy
  readonly remarks: Pick<DisruptionRemarks, 'unconsolidatable'>
  readonly clock: Pick<Clock, 'monotonic'>
  /** Given where nodes are consolidated of which none goes without the others of its unit. */
  readonly units?: WholeUnits
}

export class ConsolidationAdmission {
  readonly #deps: Dependencies
  /** What was told last of each claim, as it is now. */
  readonly #told = new WeakMap<NodeClaim, { readonly because: string; readonly atMs: number }>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  get groups(): GroupScope {
    return this.#deps.units === undefined ? 'alone' : 'together'
  }

  /** Whether there is no instance of the sort that is looked at. */
  get isIdle(): boolean {
    return this.#deps.units?.isEmpty ?? false
  }

  /** Whether the instance is of the sort that is looked at, told from little. */
  concerns(stateNode: StateNode): boolean {
    return this.#deps.units?.has(stateNode) ?? true
  }

  /** Of those that are accepted, the nodes that may go. */
  whole(accepted: readonly Candidate[], catalogue: Catalogue): readonly Candidate[] {
    return this.#deps.units?.complete(accepted, catalogue, 'graceful') ?? accepted
  }

  /** Sets of names of candidates that go together. */
  sets(candidates: Iterable<Candidate>): readonly (readonly string[])[] | undefined {
    return this.#deps.units?.setsOf([...candidates])
  }

  accepts(candidate: Candidate): boolean {
    const { policy } = this.#deps
    if (candidate.pool.spec.replicas !== undefined) return false
    const because = unconsolidatable(candidate) ?? policy.restOf(candidate)?.text
    if (because !== undefined) this.#tellWhyNot(candidate, because)
    else if (!isEmpty(candidate))
      return policy.isInformed && policy.isAtRest(candidate) && policy.freshnessOf(candidate) === undefined
    return false
  }

  /** From pass to pass the same is true of nearly all nodes, and has been told. */
  #tellWhyNot(candidate: Candidate, because: string): void {
    const { clock, remarks } = this.#deps
    const { claim } = candidate
    const nowMs = clock.monotonic()
    const told = this.#told.get(claim)
    if (told?.because === because && nowMs - told.atMs < unconsolidatableMs) return
    this.#told.set(claim, { because, atMs: nowMs })
    remarks.unconsolidatable(candidate, because)
  }
}
