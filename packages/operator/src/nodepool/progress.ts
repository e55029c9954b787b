import {
  annotations,
  type Condition,
  ConditionSet,
  conditionOf,
  karpenterKinds,
  type NewCondition,
  type NodeClaim,
  type NodePool,
  nodePoolHash,
  ownValue,
  sameCondition,
} from '@tenon/api'
import { done, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import { expiredReason, nodesUpdatedAnnotation } from '../nodeclaim/disruption-conditions.ts'
import { staticDrift } from '../nodeclaim/static-drift.ts'
import { patchStatus } from '../patch-status.ts'
import type { Settings } from '../settings.ts'
import { type Caches, indexes } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { nodePoolConditions } from '../state/conditions.ts'
import { poolOf } from '../state/nodepools/managed-pool.ts'
import { isUnreadable } from '../state/readable.ts'

interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: Pick<ClusterState, 'managedPool' | 'nodeOf' | 'podsOnNodes'>
  readonly settings: Pick<Settings, 'featureGates'>
  readonly clock: Clock
}

const complete = 'RolloutComplete'
const ignored = 'FieldIgnored'
/** Changes of claims within this time are counted together. */
const gatheringMs = 1000
/** Figures of a rollout are written this often, its begin and end at once. */
const figuresMs = 5000
/** What blocks nodes changes without a change of NodeClaims. */
const blockedMs = 60_000
/** Outdated nodes whose pods are compared with PodDisruptionBudgets, and budgets that are named. */
const mostExamined = 200
const mostNamed = 3

interface Rollout {
  readonly updated: number
  readonly total: number
  /** Outdated, and being deleted. */
  readonly draining: number
  /** Outdated nodes by the PodDisruptionBudget that keeps their pods. */
  readonly blocked: ReadonlyMap<string, number>
}

/**
 * `nodepool.progress`: keeps the conditions RolloutComplete, which `kubectl wait` and dashboards understand, and FieldIgnored
 * of NodePools.
 */
export class NodePoolProgress implements ControllerSpec {
  readonly name = 'nodepool.progress'
  readonly concurrency = { least: 2, most: 100 }
  readonly #deps: Dependencies
  /** When figures were written last, by NodePool. */
  readonly #writtenMs = new Map<string, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { nodeClaims, nodePools } = this.#deps.caches
    enqueueChanged(nodePools, enqueue)
    nodeClaims.onChange(({ object }) => {
      enqueue(poolOf(object), gatheringMs)
    })
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { caches, client, clock, settings } = this.#deps
    const pool = this.#deps.state.managedPool(name)
    if (pool === undefined) {
      this.#writtenMs.delete(name)
      return done
    }
    // Others write the first conditions; until then there are no nodes either.
    if (isUnreadable(pool) || conditionOf(pool, 'Ready') === undefined) return done
    // What claims are compared with is that of the former template until then.
    if (ownValue(pool.metadata.annotations, annotations.nodePoolHash) !== nodePoolHash(pool)) return done
    const rollout = this.#rollout(pool, caches.nodeClaims.byIndex(indexes.byNodePool, name))
    const isComplete = rollout.updated === rollout.total && rollout.draining === 0
    const wanted = isComplete ? { type: complete, status: 'True' as const } : underWay(rollout)
    const gate = settings.featureGates.staticCapacity
    const before = ConditionSet.of(pool, nodePoolConditions)
    const after =
      pool.spec.replicas === undefined || gate
        ? before.clear(ignored)
        : before.set(replicasIgnored, clock.now())
    const isTurn = conditionOf(pool, complete)?.status !== wanted.status
    const leftMs = isTurn ? 0 : (this.#writtenMs.get(name) ?? 0) + figuresMs - clock.now()
    const again: ReconcileResult = isComplete ? done : { kind: 'after', delayMs: Math.max(leftMs, blockedMs) }
    if (leftMs > 0 && after === before) return { kind: 'after', delayMs: leftMs }
    const { conditions } = after.set(wanted, clock.now())
    if (!isStored(pool, conditions)) {
      this.#writtenMs.set(name, clock.now())
      const outcome = await patchStatus(client, karpenterKinds.nodePool, pool, { conditions })
      return outcome === 'conflict' ? { kind: 'backoff' } : again
    }
    const figures = `${rollout.updated}/${rollout.total}`
    const stored = ownValue(pool.metadata.annotations, nodesUpdatedAnnotation)
    if (stored === figures || (isComplete && isEnd(stored))) return again
    this.#writtenMs.set(name, clock.now())
    const noted = { [nodesUpdatedAnnotation]: figures }
    await client.patch(karpenterKinds.nodePool, { name }, { metadata: { annotations: noted } })
    return again
  }

  #rollout(pool: NodePool, claims: readonly NodeClaim[]): Rollout {
    const outdated = claims.filter((claim) => isOutdated(claim, pool))
    const isOld = new Set(outdated)
    const isLeaving = ({ metadata }: NodeClaim) => metadata.deletionTimestamp !== undefined
    const left = outdated.filter((claim) => !isLeaving(claim))
    const updated = claims.filter(
      (claim) =>
        !isLeaving(claim) && !isOld.has(claim) && conditionOf(claim, 'Initialized')?.status === 'True',
    ).length
    return {
      updated,
      total: updated + left.length,
      draining: outdated.length - left.length,
      blocked: this.#blocked(left.slice(0, mostExamined)),
    }
  }

  #blocked(outdated: readonly NodeClaim[]): ReadonlyMap<string, number> {
    const { state } = this.#deps
    const blocked = new Map<string, number>()
    for (const claim of outdated) {
      const node = state.nodeOf(claim)
      const held = node && state.podsOnNodes.held(node.metadata.name).next().value
      if (held === undefined) continue
      const budgets = held.budgets.join(', ')
      blocked.set(budgets, (blocked.get(budgets) ?? 0) + 1)
    }
    return blocked
  }
}

/** Whether the node is not as its NodePool and node class ask for; one that has only expired is. */
function isOutdated(claim: NodeClaim, pool: NodePool): boolean {
  const drifted = conditionOf(claim, 'Drifted')
  if (drifted?.status === 'True' && drifted.reason !== expiredReason) return true
  return conditionOf(claim, 'Launched')?.status === 'True' && staticDrift(claim, pool) !== undefined
}

function underWay({ updated, total, draining, blocked }: Rollout): NewCondition {
  const budgets = [...blocked].toSorted(([, a], [, b]) => b - a)
  const named = budgets
    .slice(0, mostNamed)
    .map(([names, nodes]) => `; ${nodes} blocked by PodDisruptionBudget ${names}`)
  const leaving = draining > 0 ? `; ${draining} outdated being deleted` : ''
  const message = `${updated} of ${total} nodes updated${named.join('')}${leaving}`
  return { type: complete, status: 'False', reason: 'NodesOutdated', message }
}

const replicasIgnored: NewCondition = {
  type: ignored,
  status: 'True',
  reason: 'FeatureGateOff',
  message:
    'spec.replicas has no effect while feature gate StaticCapacity is off; start the controller with --feature-gates StaticCapacity=true, or remove the field',
}

/** Whether the figures are those of the end of a rollout, or there was none; changes of the size are not worth a write. */
function isEnd(figures: string | undefined): boolean {
  const [updated, total] = figures?.split('/') ?? []
  return updated === total
}

/** Whether both conditions are as stored, also in the generation of which they tell. */
function isStored(pool: NodePool, conditions: readonly Condition[]): boolean {
  return [complete, ignored].every((type) => {
    const [wanted, stored] = [conditions.find((each) => each.type === type), conditionOf(pool, type)]
    return wanted === undefined || stored === undefined ? wanted === stored : sameCondition(wanted, stored)
  })
}
