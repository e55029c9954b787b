/** `disruption`, method StaticDrift: replaces drifted nodes of static NodePools (disruption.md 8, cluster-state.md 15.5). */
import { counted } from '@tenon/api'
import { exceededBy } from '../../provisioning/overtaken.ts'
import type { EventRecorder } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import {
  nodeLimit,
  type StaticClaims,
  staticPool,
  type StaticPool,
} from '../../nodepool/static/static-pools.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { StateNode } from '../../state/nodes/state-node.ts'
import type { Candidate } from '../candidates.ts'
import type { Command, Replacement } from '../commands/command.ts'
import { driftedAmong, isDrifted, isRolloutPaused } from './drift.ts'
import type { DisruptionMethod, Pass, PassOutcome } from './method.ts'
import { heldBackText } from './replace-first.ts'
import { nodeLimitRemedy } from '../../nodepool/limit-report.ts'
import { type NodeLimitParts, reportNodeLimit } from '../node-limits.ts'
import type { DisruptionReport } from '../report.ts'
import { mayGoFirst } from '../without-surge.ts'

interface Dependencies extends NodeLimitParts {
  readonly state: NodeLimitParts['state'] & Pick<ClusterState, 'managedPool'>
  readonly caches: Caches
  readonly provider: CloudProvider
  readonly claims: StaticClaims
  readonly report: DisruptionReport
  readonly events: EventRecorder
}

const reason = 'Drifted'

/** Replaces nodes one by one within budgets and limits; each only goes once its successor is initialized. */
export class StaticDrift implements DisruptionMethod {
  readonly reason = reason
  readonly type = ''
  readonly disruptionClass = 'eventual'
  readonly #deps: Dependencies
  /** Names of claims that may or may not exist, with their NodePool. */
  readonly #unclear = new Map<string, string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  among(all: readonly StateNode[]): readonly StateNode[] {
    return driftedAmong(all)
  }

  concerns(stateNode: StateNode): boolean {
    return isDrifted(stateNode)
  }

  accepts(candidate: Candidate): boolean {
    const { pool } = candidate
    if (pool.spec.replicas === undefined || !isDrifted(candidate)) return false
    return !isRolloutPaused(this.#deps, candidate)
  }

  /**
   * @throws AggregateError of the replacements that failed to begin, after all were tried.
   */
  async pass({ budgets, candidates, mayNotLaunch, begin }: Pass, signal: AbortSignal): Promise<PassOutcome> {
    const { report, state } = this.#deps
    await this.#settle(signal)
    const byPool = Map.groupBy(candidates, ({ pool }) => pool.metadata.name)
    const remaining = budgets()
    const commands = [...byPool].flatMap(([name, nodes]) => {
      const pool = staticPool(state, name)
      if (pool === undefined) return []
      if (!mayNotLaunch(name)) return this.#commands(pool, nodes, remaining.get(name) ?? 0)
      for (const node of nodes) report.blocked(node, heldBackText(name))
      return []
    })
    const outcomes = await Promise.allSettled(commands.map(begin))
    const failures = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason as unknown] : [],
    )
    if (failures.length > 0)
      throw new AggregateError(
        failures,
        `replacing ${counted(failures.length, 'node')}: ${(failures[0] as Error).message}`,
      )
    let isOvertaken = false
    for (const [index, command] of commands.entries()) {
      const outcome = outcomes[index]
      const overtaken = outcome?.status === 'fulfilled' ? outcome.value : undefined
      if (overtaken?.kind === 'quotaReached' && (await this.#mayGoFirst(command, signal)))
        isOvertaken = (await begin({ ...command, replacements: [] })) !== undefined || isOvertaken
      else isOvertaken ||= overtaken !== undefined
    }
    return isOvertaken ? 'again' : commands.length > 0 ? 'begun' : 'nothing'
  }

  /** Whether its node may go before the successor, which then has room. Nodes that are missing come first. */
  async #mayGoFirst({ candidates }: Command, signal: AbortSignal): Promise<boolean> {
    const { claims, state } = this.#deps
    const pool = staticPool(state, candidates[0]?.pool.metadata.name ?? '')
    if (pool === undefined || state.poolClaims.of(pool.metadata.name).active.length < pool.spec.replicas)
      return false
    const nodes = candidates.map(({ node }) => node)
    // Asked last, as the others may change meanwhile.
    return (await claims.hasRoomWithout(pool, nodes, signal)) && mayGoFirst(this.#deps, candidates)
  }

  /** The nodes of a NodePool to replace now, each with a name reserved for its successor. */
  #commands(pool: StaticPool, nodes: readonly Candidate[], remaining: number): readonly Command[] {
    const { active, pendingDisruption } = this.#deps.state.poolClaims.of(pool.metadata.name)
    // The NodePool has too many nodes: deprovisioning may remove these.
    if (active.length + pendingDisruption.length > pool.spec.replicas) return []
    const wanted = Math.min(nodes.length, remaining)
    const names = this.#deps.claims.reserve(pool, wanted)
    if (names.length === 0 && wanted > 0) this.#reportFull(pool, nodes.slice(0, wanted))
    return names.flatMap((name, i) => {
      const candidate = nodes[i]
      if (candidate === undefined) return []
      const replacements = [this.#replacement(pool, name)]
      return [{ reason, type: '' as const, candidates: [candidate], replacements, destinations: [] }]
    })
  }

  /** Records a limit that never has room for a successor. */
  #reportFull(pool: StaticPool, nodes: readonly Candidate[]): void {
    const { report } = this.#deps
    const { replicas } = pool.spec
    const limit = nodeLimit(pool)
    if (limit >= replicas + 1) return
    const because = `limits.nodes is ${limit}, and replicas is ${replicas}`
    reportNodeLimit(this.#deps, pool, because)
    for (const node of nodes) report.stays(node, `it is not replaced: ${because}; ${nodeLimitRemedy}`)
  }

  #replacement(pool: StaticPool, name: string): Replacement {
    const { claims, state } = this.#deps
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
        const current = staticPool(state, poolName)
        if (current === undefined || current.metadata.uid !== uid) {
          abandon()
          return { kind: 'poolGone', nodePool: poolName }
        }
        if (state.poolClaims.occupied(poolName) > nodeLimit(current)) {
          abandon()
          return { kind: 'limitExceeded', nodePool: poolName, limit: 'nodes' }
        }
        try {
          const created = await claims.create(current, name, reason.toLowerCase(), signal)
          return created.kind === 'created' ? created : exceededBy(poolName, created)
        } catch (error) {
          if (state.poolClaims.unsettled(poolName).includes(name)) this.#unclear.set(name, poolName)
          throw error
        }
      },
    }
  }

  /** Finds out whether claims without an answer exist, and releases the names of those that do not. */
  async #settle(signal: AbortSignal): Promise<void> {
    const { claims, state } = this.#deps
    for (const [name, pool] of this.#unclear) {
      const isUnsettled = state.poolClaims.unsettled(pool).includes(name)
      if (isUnsettled && !(await claims.settle(pool, name, signal))) continue
      this.#unclear.delete(name)
    }
  }
}
