import {
  type Condition,
  ConditionSet,
  conditionOf,
  karpenterKinds,
  type NewCondition,
  type NodeClass,
  sameCondition,
} from '@tenon/api'
import { done, type KubeClient } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'
import { type ControllerSpec, enqueueChanged } from '../controller.ts'
import { patchStatus } from '../patch-status.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { nodePoolConditions } from '../state/conditions.ts'
import { enqueuePoolsOfClasses, nodeClassOf } from '../state/nodepools/managed-pool.ts'
import { validatePool } from '../state/nodepools/pool-problems.ts'
import { isUnreadable } from '../state/readable.ts'

/** `nodepool.readiness` and `nodepool.validation`: keeps the conditions that say whether a pool may launch (api.md 3.6, 8.2). */
export function nodePoolReadiness(
  client: KubeClient,
  caches: Caches,
  state: ClusterState,
  provider: CloudProvider,
  clock: Clock,
): ControllerSpec {
  return {
    name: 'nodepool.readiness',
    concurrency: { least: 10, most: 1000 },
    watch(enqueue) {
      enqueueChanged(caches.nodePools, enqueue)
      enqueuePoolsOfClasses(caches, enqueue)
    },
    async reconcile(name) {
      const pool = state.managedPool(name)
      // Unreadable conditions cannot be compared with those to write.
      if (pool === undefined || (isUnreadable(pool) && pool.status === undefined)) return done
      const now = clock.now()
      const { conditions } = ConditionSet.of(pool, nodePoolConditions)
        .set(validationCondition(validatePool(pool, provider)), now)
        .set(nodeClassCondition(nodeClassOf(caches, pool)), now)
      const isStored = conditions.every((condition) => {
        const stored = conditionOf(pool, condition.type)
        return stored !== undefined && sameCondition(condition, stored)
      })
      if (isStored) return done
      const outcome = await patchStatus(client, karpenterKinds.nodePool, pool, { conditions })
      return outcome === 'conflict' ? { kind: 'backoff' } : done
    },
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

/** The message of condition Ready, and those of the conditions that it names. */
function unreadyMessage(nodeClass: NodeClass, ready: Condition): string {
  const reasons = (nodeClass.status?.conditions ?? []).filter(
    ({ type, status, message }) => status !== 'True' && message !== '' && ready.message.includes(`${type}=`),
  )
  return [ready.message, ...reasons.map(({ message }) => message)].join('; ')
}
