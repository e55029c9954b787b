import {
  ConditionSet,
  conditionOf,
  karpenterKinds,
  type KubeObject,
  type NewCondition,
  type NodeOverlay,
  type NodePool,
  sameCondition,
} from '@tenon/api'
import {
  evaluateOverlaysInSteps,
  type OfferedPool,
  type OverlayOutcome,
  renderOverlayConflict,
  renderOverlayProblems,
} from '@tenon/engine'
import type { Cache, Change, KubeClient } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import { type Clock, inSlices, type Slicing } from '@tenon/runtime'
import type { ControllerSpec } from '../controller.ts'
import { eligibilityPolicy } from '../decide/eligibility-policy.ts'
import { nodeOverlayConditions } from '../state/conditions.ts'
import { patchStatus } from '../patch-status.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { isUnreadable } from '../state/readable.ts'
import type { OverlayLayer } from './overlaid-provider.ts'

const periodMs = 6 * 60 * 60_000
/** Overlays depend on each other, so one key stands for all. */
const allOverlays = 'all'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly slicing: Slicing & { readonly clock: Clock }
}

/**
 * `nodeoverlay.controller`: evaluates all NodeOverlays for all pools, and reports those that are invalid or conflict
 * (cluster-state.md 16).
 */
export function nodeOverlays(deps: Dependencies, layer: OverlayLayer): ControllerSpec {
  const { client, caches, state, slicing } = deps
  const { overlays, store } = layer
  return {
    name: 'nodeoverlay.controller',
    concurrency: { least: 1, most: 1 },
    backoff: { baseMs: 100, capMs: 60_000 },
    perSecond: 10,
    watch(enqueue) {
      const follow = <T extends KubeObject>(cache: Cache<T>) => {
        cache.onChange((change) => {
          if (isNewGeneration(change)) enqueue(allOverlays)
        })
      }
      follow(overlays)
      follow(caches.nodePools)
      for (const cache of caches.nodeClasses) follow(cache)
      enqueue(allOverlays)
    },
    /** @throws AggregateError naming every pool whose types could not be listed; the others are evaluated. */
    async reconcile(_, signal) {
      const pools = caches.nodePools.list().filter((pool) => !isUnreadable(pool))
      const { offered, failures } = await offeredPools(layer.provider, pools, signal)
      const { outcomes, byPool } = await inSlices(
        evaluateOverlaysInSteps(overlays.list(), offered, eligibilityPolicy(deps.provider)),
        slicing,
      )
      for (const [overlay, outcome] of outcomes) {
        signal.throwIfAborted()
        // Overlays take effect only after their conditions say so.
        if (!(await storeOutcome(client, overlay, outcome, slicing.clock.now()))) return { kind: 'backoff' }
      }
      store.publish(byPool)
      state.consolidation.bump()
      if (failures.length === 0) return { kind: 'after', delayMs: periodMs }
      const texts = failures.map(({ message }) => message)
      throw new AggregateError(failures, `NodePools without evaluated overlays: ${texts.join('; ')}`)
    },
  }
}

async function offeredPools(
  catalogue: CloudProvider,
  pools: readonly NodePool[],
  signal: AbortSignal,
): Promise<{ readonly offered: readonly OfferedPool[]; readonly failures: readonly Error[] }> {
  const priceUnit = catalogue.currency?.()
  const offered: OfferedPool[] = []
  const failures: Error[] = []
  const list = async (nodePool: NodePool): Promise<void> => {
    try {
      const instanceTypes = await catalogue.getInstanceTypes(nodePool, signal)
      offered.push({ nodePool, instanceTypes, priceUnit })
    } catch (cause) {
      signal.throwIfAborted()
      const { name } = nodePool.metadata
      const text = cause instanceof Error ? cause.message : String(cause)
      failures.push(new Error(`listing the instance types of NodePool ${name}: ${text}`, { cause }))
    }
  }
  await Promise.all(pools.map(list))
  const byName = (a: OfferedPool, b: OfferedPool) =>
    a.nodePool.metadata.name < b.nodePool.metadata.name ? -1 : 1
  return { offered: offered.toSorted(byName), failures }
}

/** @returns false if the overlay has changed or is gone. */
async function storeOutcome(
  client: Pick<KubeClient, 'patch'>,
  overlay: NodeOverlay,
  outcome: OverlayOutcome,
  nowMs: number,
): Promise<boolean> {
  const { conditions } = ConditionSet.of(overlay, nodeOverlayConditions).set(conditionFor(outcome), nowMs)
  const isStored = conditions.every((condition) => {
    const stored = conditionOf(overlay, condition.type)
    return stored !== undefined && sameCondition(condition, stored)
  })
  return (
    isStored || (await patchStatus(client, karpenterKinds.nodeOverlay, overlay, { conditions })) === 'written'
  )
}

function conditionFor(outcome: OverlayOutcome): NewCondition {
  const type = 'ValidationSucceeded'
  switch (outcome.kind) {
    case 'valid':
      return { type, status: 'True' }
    case 'invalid': {
      const message = renderOverlayProblems(outcome.problems)
      return { type, status: 'False', reason: 'RuntimeValidation', message }
    }
    case 'conflict':
      return { type, status: 'False', reason: 'Conflict', message: renderOverlayConflict(outcome) }
  }
}

/** Status writes, such as those of this controller, change nothing that overlays depend on. */
function isNewGeneration(change: Change<KubeObject>): boolean {
  return change.kind !== 'updated' || change.object.metadata.generation !== change.old.metadata.generation
}
