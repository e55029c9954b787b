/** The platform's operator: creates and removes the nodes of NodeGroups (clever-cloud.md 2.3, 20). */
import { isConditionTrue, kinds, type Node, ownValue } from '@tenon/api'
import { ApiError, type Outcome, ReconcileLoop, type WorkQueue } from '@tenon/devcluster'
import { type NodeGroup, nodeGroupKind, platformLabels } from '@tenon/provider-clever-cloud'
import { decide } from './decisions.ts'
import { endGroup } from './group-end.ts'
import { clearNodes, resumeNodes, settleNodes } from './group-nodes.ts'
import { type GroupRecord, isSettled } from './group-record.ts'
import { differs, statusOf } from './group-status.ts'
import { lateEffects } from './late-effects.ts'
import { decisionIn, newRecord } from './new-record.ts'
import { earliest, groupOf, type Platform, platformFinalizer } from './platform.ts'

/** Reconciles each group when it or one of its Nodes changes, and when something is due. */
export class GroupKeeper {
  readonly #platform: Platform
  readonly #loop: ReconcileLoop
  readonly #groups: WorkQueue
  readonly #subscriptions: (() => void)[] = []

  constructor(platform: Platform) {
    this.#platform = platform
    this.#loop = new ReconcileLoop(platform.clock, platform.logger)
    this.#groups = this.#loop.queue('NodeGroup', (name) => this.#reconcile(name))
  }

  start(): void {
    const { api } = this.#platform
    this.#removeLostNodes()
    const hear = (node: Node) => this.#hear(node)
    this.#subscriptions.push(
      api.subscribe(nodeGroupKind, {
        added: (group) => this.#meet(group),
        updated: ({ metadata }) => this.#groups.add(metadata.name),
        deleted: (group) => this.#forget(group),
      }),
      api.subscribe(kinds.node, { added: hear, updated: hear, deleted: hear }),
    )
  }

  stop(): void {
    for (const end of this.#subscriptions) end()
    this.#loop.stop()
    for (const { instances } of this.#platform.records.values())
      for (const instance of instances.values()) this.#platform.host.cut(instance)
  }

  #meet(group: NodeGroup): void {
    const { clock, faults, records, settings, random } = this.#platform
    const { creationTimestamp = '', finalizers = [], name } = group.metadata
    const isKnown = group.status !== undefined || finalizers.includes(platformFinalizer)
    const ageMs = isKnown ? Math.max(0, clock.now() - Date.parse(creationTimestamp)) : 0
    const effects = isKnown ? [] : faults.strike(group)
    const record = newRecord(group, clock.monotonic() - ageMs, effects, settings, random)
    records.set(name, record)
    if (isKnown) {
      record.decision = decisionIn(group, clock.monotonic())
      record.isSynced = isConditionTrue(group, 'Ready')
      if (record.decision.kind === 'accepted')
        this.#attempt(name, () => resumeNodes(this.#platform, group, record))
    }
    // Not before all others are known, as they count against the quota.
    this.#groups.add(name)
  }

  #forget({ metadata: { name, uid } }: NodeGroup): void {
    const { records } = this.#platform
    const record = records.get(name)
    if (record === undefined || record.uid !== uid) return
    records.delete(name)
    this.#attempt(name, () => {
      clearNodes(this.#platform, record)
    })
  }

  #hear(node: Node): void {
    const group = ownValue(node.metadata.labels, platformLabels.nodeGroup)
    const record = group === undefined ? undefined : this.#platform.records.get(group)
    if (record !== undefined && (record.end !== undefined || !record.isSynced || !isSettled(record)))
      this.#groups.add(record.name)
  }

  /** A Node of an earlier run without a group has no instance. */
  #removeLostNodes(): void {
    const { api, host } = this.#platform
    const groups = new Set(api.list(nodeGroupKind).map(({ metadata }) => metadata.name))
    for (const { metadata } of api.list(kinds.node)) {
      const group = ownValue(metadata.labels, platformLabels.nodeGroup)
      if (group !== undefined && !groups.has(group))
        this.#attempt(group, () => {
          host.removeNode(metadata.name)
        })
    }
  }

  #reconcile(name: string): Outcome {
    const { clock, records } = this.#platform
    const record = records.get(name)
    const nextMs = record && this.#pass(record)
    return nextMs === undefined ? undefined : { afterMs: Math.max(0, nextMs - clock.monotonic()) }
  }

  /** One pass over a group; returns when the next is due. */
  #pass(record: GroupRecord): number | undefined {
    const { api, clock } = this.#platform
    const group = groupOf(this.#platform, record)
    if (group === undefined) return undefined
    if (group.metadata.deletionTimestamp !== undefined) {
      this.#writeStatus(group, record)
      return endGroup(this.#platform, group, record)
    }
    const { finalizers = [] } = group.metadata
    if (!finalizers.includes(platformFinalizer))
      api.patch(nodeGroupKind, undefined, record.name, {
        metadata: { finalizers: [...finalizers, platformFinalizer] },
      })
    if (record.decision.kind === 'undecided') {
      if (clock.monotonic() < record.answerAtMs)
        return earliest([record.answerAtMs, lateEffects(this.#platform, record)])
      for (const other of decide(this.#platform, record)) this.#groups.add(other.name)
    }
    const effectMs = lateEffects(this.#platform, record)
    // A fault may have changed or removed the group.
    const latest = groupOf(this.#platform, record)
    if (latest === undefined) return undefined
    const nodesMs = this.#keepNodes(latest, record)
    this.#writeStatus(latest, record)
    return earliest([effectMs, nodesMs])
  }

  #keepNodes(group: NodeGroup, record: GroupRecord): number | undefined {
    if (record.decision.kind === 'accepted') return settleNodes(this.#platform, group, record)
    clearNodes(this.#platform, record)
    return undefined
  }

  #writeStatus(group: NodeGroup, record: GroupRecord): void {
    const { api, clock, settings } = this.#platform
    const { quotaMessage } = settings
    const facts = { nowMs: clock.monotonic(), wallMs: clock.now(), quotaMessage }
    const status = statusOf(group, record, facts)
    if (status !== undefined && differs(status, group.status))
      api.patch(nodeGroupKind, undefined, record.name, { status }, 'status')
  }

  #attempt(group: string, act: () => void): void {
    try {
      act()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.#platform.logger.debug('the platform could not reconcile a NodeGroup', { group, error })
    }
  }
}
