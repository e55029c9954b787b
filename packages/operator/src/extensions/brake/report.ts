/** `brake`: reports pauses of the cluster and of NodePools: condition, events, metrics, journal (ask.md 8). */
import { conditionOf, ConditionSet, karpenterKinds, type KubeObject, type NodePool } from '@tenon/api'
import { done, type EventRecorder, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import { isUnreadable } from '../../state/readable.ts'
import { nodePoolConditions } from '../../state/conditions.ts'
import type { Caches } from '../../state/caches.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { brakeName, includable, leftOf, type Pause, pauseSentence } from '../../state/pause.ts'
import type { Journal } from '../../journal/journal.ts'
import type { Metrics } from '../../metrics/metrics.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'brakeConfigMaps' | 'nodePools'>
  readonly state: Pick<ClusterState, 'brake' | 'managedPool'>
  readonly events: EventRecorder
  readonly journal: Pick<Journal, 'note'>
  readonly metrics: Pick<Metrics, 'paused' | 'pausesUnreadable'>
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Logger
}

const conditionType = 'Paused'
const longestMs = 60_000
const maxMessage = 4000
const holdables = ['voluntary', ...includable] as const

export class BrakeReport implements ControllerSpec {
  readonly name = 'brake'
  readonly concurrency = { least: 10, most: 100 }
  readonly #deps: Dependencies
  /** Sentences reported last, by NodePool; the empty name is the cluster. */
  readonly #reported = new Map<string, readonly string[]>()
  /** Whether the ConfigMap cannot be read. */
  #isUnknown = false

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
    // The ConfigMap may exist already, or be unreadable.
    enqueue('')
  }

  /** @param name of a NodePool; empty for the cluster. */
  async reconcile(name: string): Promise<ReconcileResult> {
    const { caches, clock, state } = this.#deps
    const now = clock.now()
    const pauses = state.brake.stateOf(name, now)
    if (name === '') {
      const isUnknown = state.brake.isUnreadable()
      this.#report('', caches.brakeConfigMaps?.list()[0], pauses)
      this.#measure('', pauses, isUnknown)
      this.#warnIfUnknown(isUnknown)
      return nextLook(pauses, now) ?? { kind: 'after', delayMs: longestMs }
    }
    const pool = this.#deps.state.managedPool(name)
    if (pool === undefined) {
      this.#reported.delete(name)
      this.#measure(name, [], false)
      return done
    }
    if (!isUnreadable(pool) && !(await this.#writeCondition(pool, pauses))) return { kind: 'backoff' }
    const own = pauses.filter(({ nodePool }) => nodePool === name)
    this.#report(name, pool, own)
    this.#measure(name, own, false)
    return nextLook(pauses, now) ?? done
  }

  /** @returns false when the NodePool has changed meanwhile. */
  async #writeCondition(pool: NodePool, pauses: readonly Pause[]): Promise<boolean> {
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

  /** Records pauses that began or ended since the last report: in the journal, the log and events. */
  #report(name: string, object: KubeObject | undefined, pauses: readonly Pause[]): void {
    const { events, journal, logger } = this.#deps
    const before = this.#reported.get(name) ?? []
    const now = pauses.map(pauseSentence)
    this.#reported.set(name, now)
    const scope = name === '' ? {} : { nodePool: name }
    const record = (reason: 'Paused' | 'PauseUnreadable' | 'Resumed', message: string) => {
      journal.note({ kind: 'brake', reason, message, ...scope })
      logger.info(reason === 'Resumed' ? 'resumed' : 'paused', { ...scope, because: message })
      if (object === undefined) return
      const type = reason === 'PauseUnreadable' ? 'Warning' : 'Normal'
      const dedupe = [object.metadata.uid ?? object.metadata.name, message]
      events.record({ object, type, reason, message, dedupe })
    }
    for (const [index, sentence] of now.entries())
      if (!before.includes(sentence))
        record(pauses[index]?.problem === undefined ? 'Paused' : 'PauseUnreadable', sentence)
    for (const sentence of before)
      if (!now.includes(sentence)) record('Resumed', `This pause is over or was changed: ${sentence}`)
  }

  #measure(nodepool: string, pauses: readonly Pause[], isUnknown: boolean): void {
    const { metrics } = this.#deps
    for (const by of ['person', 'automatic'] as const)
      for (const what of holdables) {
        const isPaused = pauses.some((pause) => pause.by === by && pause.holds.has(what))
        if (isPaused) metrics.paused.set({ nodepool, what, by }, 1)
        else metrics.paused.remove({ nodepool, what, by })
      }
    const isFaulty = isUnknown || pauses.some(({ problem }) => problem !== undefined)
    if (isFaulty) metrics.pausesUnreadable.set({ nodepool }, 1)
    else metrics.pausesUnreadable.remove({ nodepool })
  }

  #warnIfUnknown(isUnknown: boolean): void {
    if (isUnknown && !this.#isUnknown)
      this.#deps.logger.warn(
        'the ConfigMap that pauses disruption cannot be read; only annotations of NodePools pause it',
        {
          ConfigMap: { name: brakeName },
          fix: 'grant list and watch of this ConfigMap in the namespace of the controller, as the chart does',
        },
      )
    this.#isUnknown = isUnknown
  }
}

function reasonOf(pauses: readonly Pause[]): string {
  if (pauses.some(({ problem }) => problem !== undefined)) return 'Unreadable'
  return pauses.some(({ by }) => by === 'person') ? 'Requested' : 'AutoBrake'
}

/** When the first of them ends; undefined if there are none. */
function nextLook(pauses: readonly Pause[], nowMs: number): ReconcileResult | undefined {
  if (pauses.length === 0) return undefined
  return { kind: 'after', delayMs: Math.min(...pauses.map((pause) => leftOf(pause, nowMs, longestMs))) }
}
