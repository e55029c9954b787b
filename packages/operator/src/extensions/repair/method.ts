/**
 * `disruption`, method Repair: replaces unhealthy nodes whose kubelet reports. The replacement is initialized first, then
 * the node is drained with PodDisruptionBudgets until its grace period ends (wanted.md 2).
 */
import { karpenterKinds, kinds, type Node, type NodeClaim, type NodePool } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { Candidate } from '../../disruption/candidates.ts'
import type { CommandTerms } from '../../disruption/commands/command.ts'
import type { PlannedReplacements } from '../../disruption/commands/planned-replacement.ts'
import type { DisruptionMethod, Pass, PassOutcome } from '../../disruption/methods/method.ts'
import { replaceFirst } from '../../disruption/methods/replace-first.ts'
import type { NodeLimitParts } from '../../disruption/node-limits.ts'
import type { DisruptionReport } from '../../disruption/report.ts'
import type { RemovalSimulation } from '../../disruption/simulation.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import { countUnhealthy } from '../../node/health.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { StateNode } from '../../state/nodes/state-node.ts'
import { isWhole } from '../../state/readable.ts'
import type { RepairReport } from './report.ts'
import type { RepairRules } from './rules.ts'

interface Dependencies extends NodeLimitParts {
  readonly client: Pick<KubeClient, 'get'>
  readonly caches: Caches
  readonly state: NodeLimitParts['state'] & Pick<ClusterState, 'brake'>
  readonly metrics: Metrics
  readonly simulation: RemovalSimulation
  readonly replacements: PlannedReplacements
  readonly report: DisruptionReport
  readonly rules: RepairRules
  readonly repairReport: RepairReport
}

type Sick = Pick<Candidate, 'claim' | 'node' | 'pool'>

export class Repair implements DisruptionMethod {
  readonly reason = 'Unhealthy'
  readonly type = ''
  readonly disruptionClass = 'repair'
  readonly #deps: Dependencies
  readonly #terms: CommandTerms

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#terms = {
      whyStays: (candidate, from) => this.#whyStays(candidate, from),
      deleted: ({ claim, node }) => {
        const conditionType = deps.rules.ailmentOf(node, claim)?.policy.conditionType
        if (conditionType !== undefined) countUnhealthy(deps, node, claim, conditionType)
      },
    }
  }

  among(all: readonly StateNode[]): readonly StateNode[] {
    return this.#deps.rules.areAnyUnhealthy() ? all : []
  }

  concerns({ node, claim }: StateNode): boolean {
    return node !== undefined && claim !== undefined && this.#deps.rules.isDue(node, claim)
  }

  accepts({ node, claim, pool }: Candidate): boolean {
    const { rules, state } = this.#deps
    if (state.brake.holding(pool.metadata.name, 'repair') !== undefined) return false
    return rules.verdictOn(node, claim, pool).kind === 'replace'
  }

  async pass(pass: Pass, signal: AbortSignal): Promise<PassOutcome> {
    const { repairReport, report, rules } = this.#deps
    const begin: Pass['begin'] = async (command) => {
      const claims = command.candidates.map(({ claim }) => claim)
      let hasBegun = false
      try {
        const overtaken = await pass.begin(command)
        hasBegun = overtaken === undefined
        if (hasBegun) for (const { node } of command.candidates) repairReport.began(node, 'replace')
        return overtaken
      } finally {
        if (!hasBegun) for (const claim of claims) rules.release(claim)
      }
    }
    const sets = {
      reason: this.reason,
      allowed: pass.candidates.map((candidate) => [candidate]),
      inOrder: ([a]: readonly Candidate[], [b]: readonly Candidate[]) => this.#dueMs(a) - this.#dueMs(b),
      reportHeld: (candidate: Candidate, text: string) => {
        report.blocked(candidate, text)
      },
      confirmed: ([candidate]: readonly Candidate[]) => this.#isConfirmed(candidate),
      terms: this.#terms,
    } as const
    return await replaceFirst(this.#deps, sets, { mayNotLaunch: pass.mayNotLaunch, begin }, signal)
  }

  #dueMs(candidate: Candidate | undefined): number {
    return (candidate && this.#deps.rules.ailmentOf(candidate.node, candidate.claim)?.repairAtMs) ?? 0
  }

  /** Takes a place for the repair, and asks the API server whether it is still wanted. */
  async #isConfirmed(candidate: Candidate | undefined): Promise<boolean> {
    if (candidate === undefined) return false
    const { rules } = this.#deps
    // Another repair may have begun while this pass was reading.
    if (rules.verdictOn(candidate.node, candidate.claim, candidate.pool).kind !== 'replace') return false
    if (!rules.begin(candidate.claim)) return false
    let isConfirmed = false
    try {
      const fresh = await this.#fresh(candidate)
      isConfirmed =
        fresh !== undefined &&
        rules.isDue(fresh.node, fresh.claim) &&
        rules.verdictOn(fresh.node, fresh.claim, fresh.pool).kind === 'replace'
      return isConfirmed
    } finally {
      if (!isConfirmed) rules.release(candidate.claim)
    }
  }

  async #whyStays(candidate: Candidate, from: 'cache' | 'fresh'): Promise<string | undefined> {
    const { rules } = this.#deps
    const sick = from === 'fresh' ? await this.#fresh(candidate) : this.#cached(candidate)
    if (sick === undefined) return 'it, or its NodePool, is gone or cannot be read'
    const stop = rules.stopOf(sick.node, sick.pool)
    if (stop !== undefined) return stop.because
    return rules.isStillDue(sick.node, sick.claim) ? undefined : 'it is well again'
  }

  #cached({ node, claim, pool }: Sick): Sick | undefined {
    const { nodeClaims, nodePools, nodes } = this.#deps.caches
    return same(
      { node, claim, pool },
      nodes.get({ name: node.metadata.name }),
      nodeClaims.get({ name: claim.metadata.name }),
      nodePools.get({ name: pool.metadata.name }),
    )
  }

  async #fresh({ node, claim, pool }: Sick): Promise<Sick | undefined> {
    const { client } = this.#deps
    const [freshNode, freshClaim, freshPool] = await Promise.all([
      client.get(kinds.node, { name: node.metadata.name }),
      client.get(karpenterKinds.nodeClaim, { name: claim.metadata.name }),
      client.get(karpenterKinds.nodePool, { name: pool.metadata.name }),
    ])
    if (freshPool !== undefined && !isWhole(karpenterKinds.nodePool.kind, freshPool)) return undefined
    return same({ node, claim, pool }, freshNode, freshClaim, freshPool)
  }
}

/** The later states of the same objects; undefined if one is gone. */
function same(
  known: Sick,
  node: Node | undefined,
  claim: NodeClaim | undefined,
  pool: NodePool | undefined,
): Sick | undefined {
  if (node === undefined || claim === undefined || pool === undefined) return undefined
  const isSame =
    node.metadata.uid === known.node.metadata.uid && claim.metadata.uid === known.claim.metadata.uid
  return isSame ? { node, claim, pool } : undefined
}
