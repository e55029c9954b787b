/** `nodepool.readiness` and `nodepool.validation`: whether a pool may launch (api.md 3.6, 8.2). */
import type { Clock } from '@tenon/runtime'
import type { CloudProvider, PoolRules } from '@tenon/provider'
import {
  type Condition,
  ConditionSet,
  conditionOf,
  karpenterKinds,
  type NewCondition,
  type NodeClass,
} from '@tenon/api'
import { done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { nodePoolConditions } from '../state/conditions.ts'
import { enqueuePoolsOfClasses, managedPool, nodeClassOf } from '../state/nodepools/managed-pool.ts'
import { isUnreadable } from '../state/readable.ts'
import { validatePool } from '../state/nodepools/pool-problems.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import type { Caches } from '../state/caches.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodeClasses' | 'nodePools'>
  readonly provider: PoolRules & Pick<CloudProvider, 'nodeClasses'>
  readonly clock: Clock
}

/** Reconciles the conditions of one NodePool. */
export class NodePoolReadiness implements ControllerSpec {
  readonly name = 'nodepool.readiness'
  readonly concurrency = { least: 10, most: 1000 }
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches } = this.#deps
    enqueueChanged(caches.nodePools, enqueue)
    enqueuePoolsOfClasses(caches, enqueue)
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { clock, client, provider } = this.#deps
    const pool = managedPool(this.#deps, name)
    // Conditions that cannot be read cannot be told from those that are to be written.
    if (pool === undefined || (isUnreadable(pool) && pool.status === undefined)) return done
    const before = ConditionSet.of(pool, nodePoolConditions)
    const problems = validatePool(pool, provider)
    const after = before
      .set(validationCondition(problems), clock.now())
      .set(nodeClassCondition(nodeClassOf(this.#deps.caches, pool)), clock.now())
    const isStored = after.conditions.every((condition) =>
      isSame(condition, conditionOf(pool, condition.type)),
    )
    if (isStored) return done
    try {
      await client.patch(
        karpenterKinds.nodePool,
        { name },
        { status: { conditions: after.conditions } },
        { subresource: 'status', resourceVersion: pool.metadata.resourceVersion ?? '' },
      )
    } catch (error) {
      if (isKubeError(error, 'conflict')) return { kind: 'backoff' }
      if (!isKubeError(error, 'notFound')) throw error
    }
    return done
  }
}

function validationCondition(problems: readonly string[]): NewCondition {
  if (problems.length === 0) return { type: 'ValidationSucceeded', status: 'True' }
  return {
    type: 'ValidationSucceeded',
    status: 'False',
    reason: 'NodePoolValidationFailed',
    message: problems.join('; '),
  }
}

function nodeClassCondition(nodeClass: NodeClass | undefined): NewCondition {
  const type = 'NodeClassReady'
  if (nodeClass === undefined) {
    return { type, status: 'False', reason: 'NodeClassNotFound', message: 'The node class does not exist' }
  }
  if (nodeClass.metadata.deletionTimestamp !== undefined) {
    return {
      type,
      status: 'False',
      reason: 'NodeClassTerminating',
      message: 'The node class is being deleted',
    }
  }
  const ready = conditionOf(nodeClass, 'Ready')
  if (ready === undefined || ready.status === 'Unknown') {
    return {
      type,
      status: 'False',
      reason: 'NodeClassReadinessUnknown',
      message: 'The node class has not been checked yet',
    }
  }
  if (ready.status === 'False')
    return { type, status: 'False', reason: ready.reason, message: unreadyMessage(nodeClass, ready) }
  return { type, status: 'True' }
}

/** What the class says, and the reasons of the conditions that it names. */
function unreadyMessage(nodeClass: NodeClass, ready: Condition): string {
  const reasons = (nodeClass.status?.conditions ?? []).filter(
    ({ type, status, message }) => status !== 'True' && message !== '' && ready.message.includes(`${type}=`),
  )
  return [ready.message, ...reasons.map(({ message }) => message)].join('; ')
}

function isSame(a: Condition, b: Condition | undefined): boolean {
  return (
    a.status === b?.status &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.observedGeneration === b.observedGeneration
  )
}
