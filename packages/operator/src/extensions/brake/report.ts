/** `brake`: says of each NodePool, and of the cluster, what is paused (ask.md 8). */
import { ConditionSet, conditionOf, karpenterKinds, type NodePool } from '@tenon/api'
import { done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import { isUnreadable } from '../../state/readable.ts'
import { managedPool } from '../../state/nodepools/managed-pool.ts'
import { nodePoolConditions } from '../../state/conditions.ts'
import type { Caches } from '../../state/caches.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { leftOf, type Pause, pauseSentence } from '../../state/pause.ts'
import type { PauseNews } from './news.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'brake'>
  readonly provider: Pick<CloudProvider, 'nodeClasses'>
  readonly news: PauseNews
  readonly clock: Pick<Clock, 'now'>
}

const conditionType = 'Paused'
const longestMs = 60_000
const maxMessage = 4000

export class BrakeReport implements ControllerSpec {
  readonly name = 'brake'
  readonly concurrency = { least: 10, most: 100 }
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches, state } = this.#deps
    const enqueueAll = () => {
      for (const { metadata } of caches.nodePools.list()) enqueue(metadata.name)
    }
    enqueueChanged(caches.nodePools, enqueue)
    state.brake.changes.add((pool) => {
      enqueue(pool)
      if (pool === '') enqueueAll()
    })
    // The ConfigMap may be there already, or unreadable.
    enqueue('')
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { clock, news, state } = this.#deps
    const now = clock.now()
    const pauses = state.brake.stateOf(name, now)
    if (name === '') {
      news.ofCluster(pauses, state.brake.isUnreadable())
      return nextLook(pauses, now) ?? { kind: 'after', delayMs: longestMs }
    }
    const pool = managedPool(this.#deps, name)
    if (pool === undefined) {
      news.forget(name)
      return done
    }
    if (!isUnreadable(pool) && !(await this.#tell(pool, pauses))) return { kind: 'backoff' }
    news.ofPool(pool, pauses)
    return nextLook(pauses, now) ?? done
  }

  /** @returns false when the NodePool has changed meanwhile. */
  async #tell(pool: NodePool, pauses: readonly Pause[]): Promise<boolean> {
    const { client, clock } = this.#deps
    const stored = conditionOf(pool, conditionType)
    const message = pauses.map(pauseSentence).join('; ').slice(0, maxMessage)
    if (pauses.length === 0 && stored === undefined) return true
    if (pauses.length > 0 && stored?.status === 'True' && stored.message === message) return true
    const before = ConditionSet.of(pool, nodePoolConditions)
    const { conditions } =
      pauses.length === 0
        ? before.clear(conditionType)
        : before.set({ type: conditionType, status: 'True', reason: reasonOf(pauses), message }, clock.now())
    try {
      await client.patch(
        karpenterKinds.nodePool,
        { name: pool.metadata.name },
        { status: { conditions } },
        { subresource: 'status', resourceVersion: pool.metadata.resourceVersion ?? '' },
      )
      return true
    } catch (error) {
      if (isKubeError(error, 'conflict')) return false
      if (!isKubeError(error, 'notFound')) throw error
      return true
    }
  }
}

function reasonOf(pauses: readonly Pause[]): string {
  if (pauses.some(({ problem }) => problem !== undefined)) return 'Unreadable'
  return pauses.some(({ by }) => by === 'person') ? 'Requested' : 'AutoBrake'
}

/** When the first of them ends; undefined while there is none. */
function nextLook(pauses: readonly Pause[], nowMs: number): ReconcileResult | undefined {
  if (pauses.length === 0) return undefined
  return { kind: 'after', delayMs: Math.min(...pauses.map((pause) => leftOf(pause, nowMs, longestMs))) }
}
