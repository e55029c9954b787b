/** `disruption`, method StaticDrift: replaces drifted nodes of static NodePools (disruption.md 8, cluster-state.md 15.5). */
import { isConditionTrue } from '@tenon/api'
import { reserveStaticClaims } from '../../act/static-claims.ts'
import type { OperatorContext } from '../../context.ts'
import { type StaticPool, staticPool } from '../static-provisioning/static-pool.ts'
import { remainingDisruptions } from './budget.ts'
import { type Candidate, candidates, isHeldByPods } from './candidates.ts'
import type { Replacements } from './replacements.ts'

/** Replaces nodes one by one within budgets and limits; each only goes once its successor is initialized. */
export class StaticDrift {
  readonly #context: OperatorContext
  readonly #replacements: Replacements

  constructor(context: OperatorContext, replacements: Replacements) {
    this.#context = context
    this.#replacements = replacements
  }

  /**
   * @returns whether anything was begun.
   * @throws AggregateError of the replacements that could not be begun, after all were tried.
   */
  async pass(signal: AbortSignal): Promise<boolean> {
    await this.#replacements.settle(signal)
    const begun = [...Map.groupBy(this.#drifted(), ({ pool }) => pool)].flatMap(([name, nodes]) => {
      const pool = staticPool(this.#context, name)
      return pool === undefined ? [] : this.#commands(pool, nodes)
    })
    const outcomes = await Promise.allSettled(
      begun.map(([pool, candidate, name]) => this.#replacements.begin(pool, candidate, name, signal)),
    )
    const failures = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason as unknown] : [],
    )
    if (failures.length > 0)
      throw new AggregateError(
        failures,
        `replacing ${failures.length} node(s): ${(failures[0] as Error).message}`,
      )
    return begun.length > 0
  }

  #drifted(): readonly Candidate[] {
    return candidates(this.#context).filter(
      (candidate) =>
        isConditionTrue(candidate.claim, 'Drifted') &&
        staticPool(this.#context, candidate.pool) !== undefined &&
        // With a grace period pods cannot hold the node for good, and need not be waited for.
        (candidate.claim.spec.terminationGracePeriod !== undefined ||
          !isHeldByPods(this.#context, candidate)),
    )
  }

  /** The nodes of a pool to replace now, each with the name that is reserved for its successor. */
  #commands(
    pool: StaticPool,
    nodes: readonly Candidate[],
  ): readonly (readonly [StaticPool, Candidate, string])[] {
    const { name } = pool.metadata
    const { active, pendingDisruption } = this.#context.state.poolClaims.of(name)
    // There are nodes too many: those that go first may be these.
    if (active.length + pendingDisruption.length > pool.spec.replicas) return []
    const wanted = Math.min(nodes.length, remainingDisruptions(this.#context, pool, 'Drifted'))
    const names = reserveStaticClaims(this.#context, pool, wanted)
    return names.flatMap((successor, i) => {
      const candidate = nodes[i]
      return candidate === undefined ? [] : [[pool, candidate, successor] as const]
    })
  }
}
