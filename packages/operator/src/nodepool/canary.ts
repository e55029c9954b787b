import {
  ConditionSet,
  conditionOf,
  controllerOf,
  isConditionTrue,
  karpenterKinds,
  labels,
  type NewCondition,
  type Node,
  type NodeClaim,
  type NodePool,
  ownValue,
  type Pod,
} from '@tenon/api'
import { done, type EventRecorder, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import type { Journal } from '../journal/journal.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { type Caches, indexes } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { nodePoolConditions } from '../state/conditions.ts'
import { isActive, isPodReady } from '../state/pods/pods.ts'
import { poolOf } from '../state/nodepools/managed-pool.ts'
import {
  canaryCount,
  recordText,
  rolloutAnnotations,
  type RolloutRecord,
  rolloutSettings,
  type RolloutSettings,
  type Watched,
} from '../state/nodepools/rollout-settings.ts'
import { isNodeReady } from '../state/nodes/state-node.ts'
import { isUnreadable } from '../state/readable.ts'

interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly events: EventRecorder
  readonly journal: Journal
  readonly metrics: Metrics
  readonly clock: Clock
}

const conditionType = 'RolloutHalted'
/** Pods that become unready do not trigger a reconcile. */
const longestWaitMs = 60_000
const maxMessage = 4000
const namedClaims = 10

/** `nodepool.canary`: watches the replacements of a rollout, and halts it if too many are unhealthy (ask.md 9). */
export class NodePoolCanary implements ControllerSpec {
  readonly name = 'nodepool.canary'
  readonly concurrency = { least: 10, most: 1000 }
  readonly #deps: Dependencies
  /** The stored record as the cache showed it last, by NodePool UID. */
  readonly #shown = new Map<string, string>()
  /** Names of NodePools whose rollout was reported as halted. */
  readonly #halted = new Set<string>()

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
    const { clock, metrics } = this.#deps
    const pool = this.#deps.state.managedPool(name)
    if (pool === undefined) {
      this.#halted.delete(name)
      metrics.rolloutsHalted.remove({ nodepool: name })
      return done
    }
    if (isUnreadable(pool)) return done
    this.#checkReset(pool)
    const record = this.#advance(pool)
    const isStored = (await this.#storeRecord(pool, record)) && (await this.#storeCondition(pool, record))
    if (!isStored) return { kind: 'backoff' }
    const settings = this.#deps.state.rollouts.canaries.settingsOf(pool)
    const nextMs = settings === undefined ? Infinity : nextCheckMs(record.replacements, settings)
    if (nextMs === Infinity) return done
    return { kind: 'after', delayMs: Math.max(1, Math.min(longestWaitMs, nextMs - clock.now())) }
  }

  /** If somebody removed the record, the rollout goes on. */
  #checkReset(pool: NodePool): void {
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
      const next = watched(each, this.#replacement(each.claim), settings, nowMs)
      return next === undefined ? [] : [next]
    })
    const drifted = canaries.drifted(pool)
    const reasons = [...new Set(drifted.map((claim) => conditionOf(claim, 'Drifted')?.reason ?? ''))]
    const nodes = caches.nodeClaims.byIndex(indexes.byNodePool, pool.metadata.name).length
    const after = advanced(before, seen, settings, { nodes, drifted: reasons.join(', '), nowMs })
    const isOver =
      drifted.length === 0 &&
      after.halted === undefined &&
      nextCheckMs(after.replacements, settings) === Infinity
    const record = isOver ? { of: after.of, replacements: [], hasPassed: false } : after
    if (recordText(record) === recordText(before)) return before
    canaries.keep(pool, record)
    return record
  }

  #replacement(name: string): Replacement {
    const { caches, state } = this.#deps
    const claim = caches.nodeClaims.get({ name }) ?? state.seedOf(name)
    const node = claim === undefined ? undefined : state.nodeOf(claim)
    return { claim, node, pods: node === undefined ? [] : state.podsOn(node.metadata.name) }
  }

  /** @returns false if the NodePool has changed. */
  async #storeRecord(pool: NodePool, record: RolloutRecord): Promise<boolean> {
    const key = rolloutAnnotations.state
    const stored = ownValue(pool.metadata.annotations, key)
    const isEmpty = record.replacements.length === 0 && !record.hasPassed && record.halted === undefined
    const text = isEmpty ? undefined : recordText(record)
    if (text === stored) return true
    // This process removes the record, so that is no reset.
    if (text === undefined) this.#shown.delete(pool.metadata.uid ?? pool.metadata.name)
    const patch = { metadata: { annotations: { [key]: text ?? null } } }
    return await this.#patch(pool, patch)
  }

  async #storeCondition(pool: NodePool, record: RolloutRecord): Promise<boolean> {
    const stored = conditionOf(pool, conditionType)
    const wanted = haltedCondition(pool, record)
    this.#report(pool, wanted, record)
    if (wanted === undefined && (stored === undefined || stored.status === 'False')) return true
    const next: NewCondition = wanted ?? { type: conditionType, status: 'False', reason: 'Resumed' }
    if (next.status === stored?.status && next.message === stored.message) return true
    const { conditions } = ConditionSet.of(pool, nodePoolConditions).set(next, this.#deps.clock.now())
    return await this.#patch(pool, { status: { conditions } }, 'status')
  }

  /** Reports once that the rollout is halted, or goes on. */
  #report(pool: NodePool, halted: NewCondition | undefined, { replacements }: RolloutRecord): void {
    const { events, journal, metrics } = this.#deps
    const { name: nodePool, uid = nodePool } = pool.metadata
    const kind = 'rollout'
    metrics.rolloutsHalted.set({ nodepool: nodePool }, halted === undefined ? 0 : 1)
    if ((halted !== undefined) === this.#halted.has(nodePool)) return
    if (halted === undefined) {
      this.#halted.delete(nodePool)
      journal.note({ kind, reason: 'Resumed', message: 'Drifted nodes are replaced again', nodePool })
      return
    }
    this.#halted.add(nodePool)
    const { message = '', reason = conditionType } = halted
    events.record({ object: pool, type: 'Warning', reason: conditionType, message, dedupe: [uid, message] })
    const nodeClaims = replacements.filter(isUnhealthy).map(({ claim }) => claim)
    journal.note({ kind, reason, message, nodePool, nodeClaims })
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

/** Undefined if the rollout is not halted. */
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

/** What the cluster shows of a replacement. */
interface Replacement {
  readonly claim: NodeClaim | undefined
  readonly node: Node | undefined
  readonly pods: readonly Pod[]
}

/** A claim that is deleted earlier found no capacity, or somebody deleted it: that is no fault of the new template. */
const launchMs = 5 * 60_000
const initializationMs = 30 * 60_000

/** The record of a replacement, updated; undefined if the replacement is gone and was not unhealthy. */
export function watched(
  each: Watched,
  { claim, node, pods }: Replacement,
  { watchMs }: RolloutSettings,
  nowMs: number,
): Watched | undefined {
  if (each.unhealthy !== undefined || each.isHealthy === true) return each
  if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return recordOfGone(each, nowMs)
  if (each.initializedMs === undefined) {
    if (isConditionTrue(claim, 'Initialized')) return { ...each, initializedMs: nowMs }
    if (nowMs - each.sinceMs < initializationMs) return each
    return { ...each, unhealthy: `it was not initialized within ${initializationMs / 60_000} min` }
  }
  if (node === undefined || !isNodeReady(node)) return { ...each, unhealthy: 'its node stopped being Ready' }
  if (nowMs < each.initializedMs + watchMs) return each
  const moved = pods.filter((pod) => isActive(pod) && each.owners.includes(controllerOf(pod)?.uid ?? ''))
  const unready = moved.filter((pod) => !isPodReady(pod))
  if (2 * unready.length > moved.length)
    return { ...each, unhealthy: `${unready.length} of ${moved.length} moved pods are not Ready` }
  return { ...each, isHealthy: true }
}

function recordOfGone(each: Watched, nowMs: number): Watched | undefined {
  if (each.initializedMs !== undefined || nowMs - each.sinceMs < launchMs) return undefined
  return { ...each, unhealthy: 'it never became a node' }
}

/** The record of the rollout, updated with its replacements. */
export function advanced(
  record: RolloutRecord,
  seen: readonly Watched[],
  settings: RolloutSettings,
  pool: { readonly nodes: number; readonly drifted: string; readonly nowMs: number },
): RolloutRecord {
  const unhealthy = seen.filter(isUnhealthy)
  const settled = seen.filter((each) => isUnhealthy(each) || each.isHealthy === true)
  const isHalted = unhealthy.length > settings.maxUnhealthy
  const isThrough = settled.length === seen.length && seen.length >= canaryCount(settings, pool.nodes)
  const hasPassed = record.hasPassed || (!isHalted && isThrough)
  return {
    of: record.of,
    // Healthy replacements are only counted until the canaries have passed.
    replacements: hasPassed ? seen.filter((each) => each.isHealthy !== true) : seen,
    hasPassed,
    ...(isHalted && { halted: record.halted ?? { atMs: pool.nowMs, drifted: pool.drifted } }),
  }
}

const isUnhealthy = ({ unhealthy }: Watched): boolean => unhealthy !== undefined

/** When time alone changes the record; Unix milliseconds, Infinity if no replacement is watched. */
function nextCheckMs(seen: readonly Watched[], { watchMs }: RolloutSettings): number {
  const open = seen.filter((each) => !isUnhealthy(each) && each.isHealthy !== true)
  return Math.min(
    ...open.map(({ initializedMs, sinceMs }) =>
      initializedMs === undefined ? sinceMs + initializationMs : initializedMs + watchMs,
    ),
    Number.POSITIVE_INFINITY,
  )
}
