/** `nodepool.canary`: watches the replacements of a rollout, and halts it when too many are unhealthy (ask.md 9). */
import {
  ConditionSet,
  conditionOf,
  karpenterKinds,
  labels,
  type NewCondition,
  type NodePool,
  ownValue,
} from '@tenon/api'
import { done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import { type Caches, indexes } from '../../state/caches.ts'
import { isUnreadable } from '../../state/readable.ts'
import { isNodeReady } from '../../state/nodes/state-node.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'
import { nodePoolConditions } from '../../state/conditions.ts'
import { managedPool } from '../../state/nodepools/managed-pool.ts'
import { poolOf } from '../../state/nodepools/managed-pool.ts'
import type { RolloutNews } from './news.ts'
import { type RolloutRecord, recordText, type Watched } from '../../state/nodepools/rollout-settings.ts'
import { rolloutAnnotations, rolloutSettings } from '../../state/nodepools/rollout-settings.ts'
import { advanced, isUnhealthy, nextLookMs, watched } from './watch.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodePools' | 'nodes'>
  readonly state: Pick<ClusterState, 'nodeOf' | 'podsOn' | 'rollouts' | 'seedOf'>
  readonly provider: Pick<CloudProvider, 'nodeClasses'>
  readonly news: RolloutNews
  readonly clock: Clock
}

const conditionType = 'RolloutHalted'
/** Pods tell nothing of themselves here. */
const longestMs = 60_000
const maxMessage = 4000
const namedClaims = 10

export class NodePoolCanary implements ControllerSpec {
  readonly name = 'nodepool.canary'
  readonly concurrency = { least: 10, most: 1000 }
  readonly #deps: Dependencies
  /** UIDs of NodePools whose stored record the cache has shown, with its text. */
  readonly #shown = new Map<string, string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches, state } = this.#deps
    state.rollouts.canaries.changes.add(enqueue)
    enqueueChanged(caches.nodePools, enqueue)
    caches.nodeClaims.onChange(({ object }) => {
      enqueue(poolOf(object))
    })
    caches.nodes.onChange((change) => {
      const isChange = change.kind !== 'updated' || isNodeReady(change.old) !== isNodeReady(change.object)
      const pool = change.object.metadata.labels?.[labels.nodePool]
      if (isChange && pool !== undefined) enqueue(pool)
    })
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { clock, news } = this.#deps
    const pool = managedPool(this.#deps, name)
    if (pool === undefined) {
      news.forget(name)
      return done
    }
    if (isUnreadable(pool)) return done
    this.#noticeReset(pool)
    const record = this.#advance(pool)
    const isStored = (await this.#store(pool, record)) && (await this.#tell(pool, record))
    if (!isStored) return { kind: 'backoff' }
    const settings = this.#deps.state.rollouts.canaries.settingsOf(pool)
    const lookMs = settings === undefined ? Infinity : nextLookMs(record.replacements, settings)
    if (lookMs === Infinity) return done
    return { kind: 'after', delayMs: Math.max(1, Math.min(longestMs, lookMs - clock.now())) }
  }

  /** Somebody has taken the record away: the rollout is to go on. */
  #noticeReset(pool: NodePool): void {
    const { name, uid = name } = pool.metadata
    const stored = ownValue(pool.metadata.annotations, rolloutAnnotations.state)
    if (stored !== undefined) {
      this.#shown.set(uid, stored)
      return
    }
    if (!this.#shown.delete(uid)) return
    this.#deps.state.rollouts.canaries.reset(pool)
  }

  #advance(pool: NodePool): RolloutRecord {
    const { caches, clock, state } = this.#deps
    const { canaries } = state.rollouts
    const before = canaries.recordOf(pool)
    const settings = canaries.settingsOf(pool)
    if (settings === undefined) return before
    const nowMs = clock.now()
    const seen = before.replacements.flatMap((each): readonly Watched[] => {
      const next = watched(each, this.#sightOf(each.claim), settings, nowMs)
      return next === undefined ? [] : [next]
    })
    const drifted = canaries.drifted(pool)
    const reasons = [...new Set(drifted.map((claim) => conditionOf(claim, 'Drifted')?.reason ?? ''))]
    const nodes = caches.nodeClaims.byIndex(indexes.byNodePool, pool.metadata.name).length
    const after = advanced(before, seen, settings, { nodes, drifted: reasons.join(', '), nowMs })
    const isOver =
      drifted.length === 0 &&
      after.halted === undefined &&
      nextLookMs(after.replacements, settings) === Infinity
    const record = isOver ? { of: after.of, replacements: [], hasPassed: false } : after
    if (recordText(record) === recordText(before)) return before
    canaries.keep(pool, record)
    return record
  }

  #sightOf(name: string) {
    const { caches, state } = this.#deps
    const claim = caches.nodeClaims.get({ name }) ?? state.seedOf(name)
    const node = claim === undefined ? undefined : state.nodeOf(claim)
    return { claim, node, pods: node === undefined ? [] : state.podsOn(node.metadata.name) }
  }

  /** @returns false when the NodePool has changed meanwhile. */
  async #store(pool: NodePool, record: RolloutRecord): Promise<boolean> {
    const key = rolloutAnnotations.state
    const stored = ownValue(pool.metadata.annotations, key)
    const isEmpty = record.replacements.length === 0 && !record.hasPassed && record.halted === undefined
    const text = isEmpty ? undefined : recordText(record)
    if (text === stored) return true
    // Its own removal is nobody's order to go on.
    if (text === undefined) this.#shown.delete(pool.metadata.uid ?? pool.metadata.name)
    const patch = { metadata: { annotations: { [key]: text ?? null } } }
    return await this.#patch(pool, patch)
  }

  async #tell(pool: NodePool, record: RolloutRecord): Promise<boolean> {
    const { clock, news } = this.#deps
    const stored = conditionOf(pool, conditionType)
    const wanted = haltedCondition(pool, record)
    news.of(pool, wanted, record)
    if (wanted === undefined && (stored === undefined || stored.status === 'False')) return true
    const next: NewCondition = wanted ?? { type: conditionType, status: 'False', reason: 'Resumed' }
    if (next.status === stored?.status && next.message === stored.message) return true
    const { conditions } = ConditionSet.of(pool, nodePoolConditions).set(next, clock.now())
    return await this.#patch(pool, { status: { conditions } }, 'status')
  }

  async #patch(pool: NodePool, patch: object, subresource?: 'status'): Promise<boolean> {
    const { name, resourceVersion = '' } = pool.metadata
    const options = { resourceVersion, ...(subresource !== undefined && { subresource }) }
    try {
      await this.#deps.client.patch(karpenterKinds.nodePool, { name }, patch, options)
      return subresource !== undefined
    } catch (error) {
      if (isKubeError(error, 'conflict')) return false
      if (!isKubeError(error, 'notFound')) throw error
      return true
    }
  }
}

/** What holds the rollout up until somebody does something; undefined when nothing does. */
function haltedCondition(pool: NodePool, { halted, replacements }: RolloutRecord): NewCondition | undefined {
  const reading = rolloutSettings(pool)
  if (reading.kind === 'invalid') {
    const message = reading.problems.map(({ field, message: what, fix }) => `${field}: ${what}; ${fix ?? ''}`)
    return { type: conditionType, status: 'True', reason: 'InvalidSettings', message: message.join('; ') }
  }
  if (reading.kind === 'none' || halted === undefined) return undefined
  const unhealthy = replacements.filter(isUnhealthy)
  const named = unhealthy.slice(0, namedClaims).map((each) => `${each.claim} (${each.unhealthy ?? ''})`)
  const rest = unhealthy.length - named.length
  const message = `Drifted nodes (${halted.drifted}) are not replaced any more: ${unhealthy.length} replacements are unhealthy, more than ${reading.settings.maxUnhealthy}: ${named.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}. "tenon rollout resume nodepool/${pool.metadata.name}", removing annotation ${rolloutAnnotations.state}, or an edit of the NodePool or its node class goes on`
  return {
    type: conditionType,
    status: 'True',
    reason: 'ReplacementsUnhealthy',
    message: message.slice(0, maxMessage),
  }
}
