/** `disruption`, method StaticDrift: replaces drifted nodes of static NodePools (disruption.md 8, cluster-state.md 15.5). */
import type { Clock, Logger, Random } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import type { EventRecorder, KubeClient } from '@tenon/kube'
import { isConditionTrue, karpenterKinds } from '@tenon/api'
import { OvertakenError } from '../../cloud/expected-failures.ts'
import { createStaticClaim, nodeLimit, reserveStaticClaims } from '../../nodepool/static/static-claims.ts'
import type { StateNode } from '../../cluster/nodes/state-node.ts'
import { type StaticPool, staticPool } from '../../nodepool/static/static-pool.ts'
import { remainingDisruptions } from '../budget.ts'
import { type Candidate, tellBlocked } from '../candidates.ts'
import type { Command, Replacement } from '../commands/command.ts'
import type { DisruptionMethod, Pass } from './method.ts'
import { heldBackText, isRolloutPaused } from './rollout-pause.ts'
import type { Caches } from '../../cluster/caches.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { Metrics } from '../../metrics/metrics.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly events: EventRecorder
  readonly metrics: Metrics
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

const reason = 'Drifted'
/** A request without an answer is taken to have ended, one way or the other, after this long. */
const lateMs = 60_000

/** Replaces nodes one by one within budgets and limits; each only goes once its successor is initialized. */
export class StaticDrift implements DisruptionMethod {
  readonly reason = reason
  readonly type = ''
  readonly disruptionClass = 'eventual'
  readonly #deps: Dependencies
  /** Names whose creation had no clear answer, with their NodePool. */
  readonly #unclear = new Map<string, string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  concerns({ claim }: StateNode): boolean {
    return claim !== undefined && isConditionTrue(claim, 'Drifted')
  }

  accepts(candidate: Candidate): boolean {
    const { pool, claim } = candidate
    if (pool.spec.replicas === undefined || !isConditionTrue(claim, 'Drifted')) return false
    return !isRolloutPaused(this.#deps, candidate)
  }

  /**
   * @returns whether anything was begun.
   * @throws AggregateError of the replacements that could not be begun, after all were tried.
   */
  async pass({ candidates, mayNotLaunch, begin }: Pass, signal: AbortSignal): Promise<boolean> {
    await this.#settle(signal)
    const byPool = Map.groupBy(candidates, ({ pool }) => pool.metadata.name)
    const remaining = remainingDisruptions(this.#deps, reason)
    const commands = [...byPool].flatMap(([name, nodes]) => {
      const pool = staticPool(this.#deps, name)
      if (pool === undefined) return []
      if (!mayNotLaunch(name)) return this.#commands(pool, nodes, remaining.get(name) ?? 0)
      for (const node of nodes) tellBlocked(this.#deps, node, heldBackText(name))
      return []
    })
    const outcomes = await Promise.allSettled(commands.map(begin))
    const failures = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason as unknown] : [],
    )
    if (failures.length > 0)
      throw new AggregateError(
        failures,
        `replacing ${failures.length} node(s): ${(failures[0] as Error).message}`,
      )
    return commands.length > 0
  }

  /** What to do about the nodes of a pool now, each with a name that is reserved for its successor. */
  #commands(pool: StaticPool, nodes: readonly Candidate[], remaining: number): readonly Command[] {
    const { active, pendingDisruption } = this.#deps.state.poolClaims.of(pool.metadata.name)
    // There are nodes too many: those that go first may be these.
    if (active.length + pendingDisruption.length > pool.spec.replicas) return []
    const names = reserveStaticClaims(this.#deps, pool, Math.min(nodes.length, remaining))
    return names.flatMap((name, i) => {
      const candidate = nodes[i]
      if (candidate === undefined) return []
      const replacements = [this.#replacement(pool, name)]
      return [{ reason, type: '' as const, candidates: [candidate], replacements, destinations: [] }]
    })
  }

  #replacement(pool: StaticPool, name: string): Replacement {
    const { state } = this.#deps
    const { name: poolName, uid } = pool.metadata
    const abandon = () => {
      state.poolClaims.release(name)
    }
    return {
      nodePool: poolName,
      requirements: pool.spec.template.spec.requirements ?? [],
      instanceTypes: [],
      abandon,
      create: async (_, signal) => {
        const current = staticPool(this.#deps, poolName)
        if (current === undefined || current.metadata.uid !== uid) {
          abandon()
          throw new OvertakenError(`NodePool ${poolName} is gone or being deleted`)
        }
        if (state.poolClaims.occupied(poolName) > nodeLimit(current)) {
          abandon()
          throw new OvertakenError(`NodePool ${poolName} exceeds its limit for nodes`)
        }
        try {
          return await createStaticClaim(this.#deps, current, name, reason.toLowerCase(), signal)
        } catch (error) {
          if (state.poolClaims.unsettled(poolName).includes(name)) this.#unclear.set(name, poolName)
          throw error
        }
      },
    }
  }

  /** Looks up claims that may have been created although nobody said so, and gives their room back. */
  async #settle(signal: AbortSignal): Promise<void> {
    const { client, clock, state } = this.#deps
    for (const [name, pool] of this.#unclear) {
      if (state.poolClaims.unsettled(pool).includes(name)) {
        // What can still come to be keeps its room.
        if (!state.poolClaims.unsettled(pool, clock.monotonic() - lateMs).includes(name)) continue
        const claim = await client.get(karpenterKinds.nodeClaim, { name }, { signal })
        if (claim !== undefined) state.seed(claim)
        state.poolClaims.release(name)
      }
      this.#unclear.delete(name)
    }
  }
}
