/**
 * `node.health` outside of the compatibility mode (wanted.md 2): reboots unhealthy nodes, and deletes those whose kubelet is
 * silent. Others are replaced by disruption method {@link Repair}.
 */
import {
  annotations,
  isConditionTrue,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
  ownValue,
} from '@tenon/api'
import { done, isKubeError, type ReconcileResult } from '@tenon/kube'
import { type CloudProvider, isProviderError } from '@tenon/provider'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import type { Kubernetes } from '../../kubernetes.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import { countUnhealthy, isHealthChange } from '../../node/health.ts'
import { isManagedNode } from '../../node/hydration.ts'
import type { ClaimDeleter } from '../../nodeclaim/lifecycle/delete-claim.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { isObserved } from '../../state/nodepools/observed-pools.ts'
import { outOfServiceBy } from '../../state/nodes/state-node.ts'
import { leftOf } from '../../state/pause.ts'
import { isWhole } from '../../state/readable.ts'
import type { RepairReport } from './report.ts'
import {
  doNotRepairAnnotation,
  type HeldRepair,
  repairStartedAnnotation,
  type RepairRules,
  type RepairVerdict,
} from './rules.ts'
import {
  type Ailment,
  endedStretches,
  joinedStretches,
  rebootedAnnotation,
  type Stretches,
  stretchesOf,
  stretchesText,
  unhealthyTimeAnnotation,
} from './unhealthy-time.ts'

interface Dependencies {
  readonly kubernetes: Kubernetes
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly deleter: ClaimDeleter
  readonly metrics: Metrics
  readonly clock: Clock
  readonly logger: Logger
  readonly rules: RepairRules
  readonly report: RepairReport
}

const pollMs = 60_000
const blockedMs = 5 * 60_000
const pausedPollMs = 10_000

/** The objects of a repair as the API server has them now. */
interface Confirmed {
  readonly node: Node
  readonly claim: NodeClaim
}

export class NodeRepair implements ControllerSpec {
  readonly name = 'node.health'
  readonly concurrency = { least: 10, most: 1000 }
  readonly backoff = { baseMs: 100, capMs: 60_000 }
  readonly perSecond = 10
  readonly #deps: Dependencies
  /** Stretches of unhealthy time that ended and are not written down yet, by name of the Node. */
  readonly #ended = new Map<string, Stretches>()
  /** All of the last hour, ahead of what the cache shows of the annotation; by name of the NodeClaim. */
  readonly #known = new Map<string, Stretches>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { clock, kubernetes, provider } = this.#deps
    const { nodeClaims, nodes } = kubernetes.caches
    nodes.onChange((change) => {
      const { name } = change.object.metadata
      if (change.kind === 'deleted') this.#ended.delete(name)
      else if (isHealthChange(change) || isVetoChange(change)) {
        if (change.kind === 'updated')
          this.#note(name, endedStretches(change.old, change.object, provider.repairPolicies, clock))
        enqueue(name)
      }
    })
    nodeClaims.onChange(({ kind, object }) => {
      if (kind === 'deleted') this.#known.delete(object.metadata.name)
    })
  }

  #note(name: string, ended: Stretches): void {
    if (ended.size === 0) return
    const before = this.#ended.get(name) ?? new Map()
    this.#ended.set(name, joinedStretches(before, ended, this.#deps.clock.now()))
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { clock, kubernetes, provider, report, rules, state } = this.#deps
    const { nodePools, nodes } = kubernetes.caches
    const node = nodes.get({ name })
    if (node === undefined || !isManagedNode(node, provider.nodeClasses)) return done
    report.unreadableVeto(node)
    const claim = state.claimOf(node)
    if (claim === undefined) return done
    const poolName = claim.metadata.labels?.[labels.nodePool] ?? ''
    const pool = nodePools.get({ name: poolName })
    const isOnlyObserved = pool !== undefined && isObserved(pool)
    if (!isOnlyObserved) await this.#writeStretches(name, claim)
    const ailment = rules.ailmentOf(node, claim)
    if (ailment === undefined) return done
    // Whoever takes the node out of service takes care of it; every change of its conditions comes back here.
    if (outOfServiceBy(node) !== undefined) return done
    const leftMs = ailment.repairAtMs - clock.now()
    if (leftMs > 0) return { kind: 'after', delayMs: leftMs }
    const pause = state.brake.holding(poolName, 'repair')
    if (pause !== undefined) return { kind: 'after', delayMs: leftOf(pause, clock.now(), pausedPollMs) }
    if (isOnlyObserved) return { kind: 'after', delayMs: blockedMs }
    const verdict = rules.verdictOn(node, claim, pool)
    if (verdict.kind === 'held') {
      report.held(node, claim, pool, verdict)
      return { kind: 'after', delayMs: delayMs(verdict, clock.now()) }
    }
    if (isForced(claim, clock.now())) return done
    if (verdict.kind !== 'replace') await this.#carryOut(verdict.kind, { node, claim, pool, ailment }, signal)
    return { kind: 'after', delayMs: pollMs }
  }

  /** Writes ended stretches to the claim of the Node; those of nodes that still start do not count. */
  async #writeStretches(name: string, claim: NodeClaim): Promise<void> {
    const ended = this.#ended.get(name)
    if (ended === undefined) return
    const { clock, kubernetes } = this.#deps
    const { metadata } = claim
    this.#ended.delete(name)
    if (!isConditionTrue(claim, 'Initialized') || metadata.deletionTimestamp !== undefined) return
    const all = joinedStretches(this.#known.get(metadata.name) ?? stretchesOf(claim), ended, clock.now())
    const patch = { metadata: { annotations: { [unhealthyTimeAnnotation]: stretchesText(all) } } }
    try {
      await kubernetes.client.patch(karpenterKinds.nodeClaim, { name: metadata.name }, patch)
    } catch (error) {
      this.#note(name, ended)
      throw error
    }
    this.#known.set(metadata.name, all)
  }

  async #carryOut(
    kind: 'force' | 'reboot',
    sick: Confirmed & { readonly pool: NodePool | undefined; readonly ailment: Ailment },
    signal: AbortSignal,
  ): Promise<void> {
    const { report, rules } = this.#deps
    // The caches may not show yet what has begun.
    if (!rules.begin(sick.claim)) return
    let hasBegun = false
    try {
      const confirmed = await this.#confirmed(sick, kind)
      if (confirmed === undefined) return
      const { claim, node } = confirmed
      const { conditionType } = sick.ailment.policy
      if (kind === 'reboot') {
        await this.#reboot(node, claim, conditionType, signal)
        hasBegun = true
      } else {
        hasBegun = await this.#delete(node, claim, conditionType)
        await this.#endGracePeriod(claim)
        if (hasBegun) report.began(node, kind)
      }
    } finally {
      if (!hasBegun) rules.release(sick.claim)
    }
  }

  /** The Node and its claim, if fresh reads of them and of the NodePool lead to the same verdict. */
  async #confirmed(
    { node, claim, pool }: Confirmed & { readonly pool: NodePool | undefined },
    kind: RepairVerdict['kind'],
  ): Promise<Confirmed | undefined> {
    const { kubernetes, rules } = this.#deps
    const { client } = kubernetes
    const [freshNode, freshClaim, freshPool] = await Promise.all([
      client.get(kinds.node, { name: node.metadata.name }),
      client.get(karpenterKinds.nodeClaim, { name: claim.metadata.name }),
      pool && client.get(karpenterKinds.nodePool, { name: pool.metadata.name }),
    ])
    if (freshNode === undefined || freshNode.metadata.uid !== node.metadata.uid) return undefined
    if (freshClaim === undefined || freshClaim.metadata.uid !== claim.metadata.uid) return undefined
    if (freshPool !== undefined && !isWhole(karpenterKinds.nodePool.kind, freshPool)) return undefined
    if (!rules.isDue(freshNode, freshClaim)) return undefined
    if (rules.verdictOn(freshNode, freshClaim, freshPool).kind !== kind) return undefined
    return { node: freshNode, claim: freshClaim }
  }

  /** @returns whether this call deleted it. */
  async #delete(node: Node, claim: NodeClaim, conditionType: string): Promise<boolean> {
    const { deleter, logger } = this.#deps
    if (claim.metadata.deletionTimestamp !== undefined) return false
    if (!(await deleter.delete(claim, 'unhealthy', node.metadata.labels ?? {}))) return false
    logger.info('deleting unhealthy node', {
      Node: { name: node.metadata.name },
      NodeClaim: { name: claim.metadata.name },
      reason: conditionType,
    })
    countUnhealthy(this.#deps, node, claim, conditionType)
    return true
  }

  /**
   * Ends the drain, as the kubelet may never stop the pods. Only once the claim is being deleted: a deadline on a node that
   * stays, because this process ended or the node is well again, would force a drain for another reason later.
   */
  async #endGracePeriod({ metadata: { name } }: NodeClaim): Promise<void> {
    const { clock, kubernetes, logger } = this.#deps
    const { terminationTimestamp } = annotations
    const deadline = rfc3339(clock.now())
    const notes = { [repairStartedAnnotation]: deadline, [terminationTimestamp]: deadline }
    try {
      await kubernetes.client.patch(karpenterKinds.nodeClaim, { name }, { metadata: { annotations: notes } })
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
      return
    }
    logger.info('annotated nodeclaim', { NodeClaim: { name }, [terminationTimestamp]: deadline })
  }

  /** Notes the reboot before it is asked for, so that no restart of this process repeats it. */
  async #reboot(node: Node, claim: NodeClaim, conditionType: string, signal: AbortSignal): Promise<void> {
    const { clock, kubernetes, logger, provider, report } = this.#deps
    const { name, resourceVersion = '' } = claim.metadata
    await kubernetes.client.patch(
      karpenterKinds.nodeClaim,
      { name },
      { metadata: { annotations: { [rebootedAnnotation]: rfc3339(clock.now()) } } },
      { resourceVersion },
    )
    const fields = { Node: { name: node.metadata.name }, NodeClaim: { name }, reason: conditionType }
    try {
      await provider.reboot?.(claim, signal)
    } catch (error) {
      if (!isProviderError(error)) throw error
      logger.error('rebooting unhealthy node failed', { ...fields, error: error.message })
      report.rebootFailed(node, error.message)
      return
    }
    logger.info('rebooting unhealthy node', fields)
    report.began(node, 'reboot')
  }
}

/** Whether the claim is being deleted, with a deadline that has passed: nothing is left to do. */
function isForced({ metadata }: NodeClaim, nowMs: number): boolean {
  const deadlineMs = Date.parse(metadata.annotations?.[annotations.terminationTimestamp] ?? '')
  return metadata.deletionTimestamp !== undefined && deadlineMs <= nowMs
}

function delayMs(verdict: HeldRepair, nowMs: number): number {
  const longestMs = verdict.by === 'full' ? pollMs : blockedMs
  return Math.min(longestMs, Math.max(1, (verdict.untilMs ?? Infinity) - nowMs))
}

function isVetoChange(change: Parameters<typeof isHealthChange>[0]): boolean {
  return (
    change.kind === 'updated' &&
    ownValue(change.old.metadata.annotations, doNotRepairAnnotation) !==
      ownValue(change.object.metadata.annotations, doNotRepairAnnotation)
  )
}
