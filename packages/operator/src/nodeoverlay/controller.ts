/** `nodeoverlay.controller`: which NodeOverlays change what, and which cannot be used (cluster-state.md 16). */
import {
  type Condition,
  type ConditionSchema,
  ConditionSet,
  conditionOf,
  karpenterKinds,
  type KubeObject,
  type NewCondition,
  type NodeOverlay,
  type NodePool,
} from '@tenon/api'
import {
  evaluateOverlaysInSteps,
  type OfferedPool,
  type OverlayOutcome,
  renderOverlayConflict,
  renderOverlayProblems,
} from '@tenon/engine'
import { type Cache, type Change, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type Clock, inSlices, type Slicing } from '@tenon/runtime'
import type { ControllerSpec, Enqueue } from '../controller.ts'
import { isUnreadable } from '../state/readable.ts'
import { eligibilityPolicy, type PodRules } from '../decide/eligibility-policy.ts'
import type { OverlayLayer } from './overlaid-provider.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodeClasses' | 'nodePools'>
  readonly state: Pick<ClusterState, 'consolidation'>
  readonly provider: PodRules
  readonly layer: OverlayLayer
  readonly slicing: Slicing & { readonly clock: Clock }
}

const periodMs = 6 * 60 * 60_000
const schema: ConditionSchema = { dependents: ['ValidationSucceeded'] }

/** The one key of the controller. */
const allOverlays = 'all'

/** Evaluates all overlays for all pools, whatever has changed. */
export class NodeOverlayController implements ControllerSpec {
  readonly name = 'nodeoverlay.controller'
  readonly concurrency = { least: 1, most: 1 }
  readonly backoff = { baseMs: 100, capMs: 60_000 }
  readonly perSecond = 10
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** All overlays are evaluated at once, for every change of a spec that an evaluation depends on. */
  watch(enqueue: Enqueue): void {
    const { nodePools, nodeClasses } = this.#deps.caches
    const follow = <T extends KubeObject>(cache: Cache<T>) => {
      cache.onChange((change) => {
        if (isNewGeneration(change)) enqueue(allOverlays)
      })
    }
    follow(this.#deps.layer.overlays)
    follow(nodePools)
    for (const cache of nodeClasses) follow(cache)
    enqueue(allOverlays)
  }

  /**
   * Evaluates once more.
   * @throws AggregateError naming every pool whose types could not be listed; the others are evaluated.
   */
  async reconcile(_: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { caches, slicing, state } = this.#deps
    const { store, overlays } = this.#deps.layer
    const { offered, failures } = await this.#offeredPools(
      caches.nodePools.list().filter((pool) => !isUnreadable(pool)),
      signal,
    )
    const { outcomes, byPool } = await inSlices(
      evaluateOverlaysInSteps(overlays.list(), offered, eligibilityPolicy(this.#deps.provider)),
      slicing,
    )
    for (const [overlay, outcome] of outcomes) {
      signal.throwIfAborted()
      // Published is only what the objects say, so that nobody sees prices whose overlay is called wrong.
      if (!(await this.#tell(overlay, outcome))) return { kind: 'backoff' }
    }
    store.publish(byPool)
    state.consolidation.bump()
    if (failures.length === 0) return { kind: 'after', delayMs: periodMs }
    const texts = failures.map(({ message }) => message)
    throw new AggregateError(failures, `NodePools without evaluated overlays: ${texts.join('; ')}`)
  }

  async #offeredPools(
    pools: readonly NodePool[],
    signal: AbortSignal,
  ): Promise<{ readonly offered: readonly OfferedPool[]; readonly failures: readonly Error[] }> {
    const { provider } = this.#deps.layer
    const priceUnit = provider.currency?.()
    const offered: OfferedPool[] = []
    const failures: Error[] = []
    const list = async (nodePool: NodePool): Promise<void> => {
      try {
        const instanceTypes = await provider.getInstanceTypes(nodePool, signal)
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

  /** Writes the outcome if it is news; false when the overlay has changed or gone meanwhile. */
  async #tell(overlay: NodeOverlay, outcome: OverlayOutcome): Promise<boolean> {
    const { client, slicing } = this.#deps
    const { conditions } = ConditionSet.of(overlay, schema).set(conditionFor(outcome), slicing.clock.now())
    if (conditions.every((condition) => isSame(condition, conditionOf(overlay, condition.type)))) return true
    try {
      await client.patch(
        karpenterKinds.nodeOverlay,
        { name: overlay.metadata.name },
        { status: { conditions } },
        { subresource: 'status', resourceVersion: overlay.metadata.resourceVersion ?? '' },
      )
      return true
    } catch (error) {
      if (isKubeError(error, 'conflict', 'notFound')) return false
      throw error
    }
  }
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

function isSame(a: Condition, b: Condition | undefined): boolean {
  return (
    a.status === b?.status &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.observedGeneration === b.observedGeneration
  )
}

/** Status writes, this controller's own among them, change nothing that overlays depend on. */
function isNewGeneration(change: Change<KubeObject>): boolean {
  return change.kind !== 'updated' || change.object.metadata.generation !== change.old.metadata.generation
}
