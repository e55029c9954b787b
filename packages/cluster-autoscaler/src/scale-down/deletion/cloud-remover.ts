/**
 * Removes members of groups from the cloud. Calls of a group run one after the other, each with all nodes that are due
 * (cluster-autoscaler.md 6.6).
 */
import type { Node } from '@tenon/api'
import type { GroupInstance, NodeGroups } from '@tenon/provider'
import { type Clock, type Logger, messageOf } from '@tenon/runtime'
import { hardTaintOf } from '../nodes/taints.ts'
import { nameOf } from '../../pods/pod-traits.ts'
import { isScaleDownDisabled } from '../planning/eligibility.ts'
import type { ClusterReader } from './cluster-reader.ts'
import type { DeletionFailure } from './deletion-job.ts'
import { type NodeCheckDependencies, checkNodeNow } from './node-look.ts'

export interface RemoverDependencies extends NodeCheckDependencies {
  readonly nodeGroups: Pick<NodeGroups, 'deleteInstances' | 'groupOf' | 'holdOf' | 'instances'>
  readonly reader: ClusterReader
  readonly clock: Clock
  readonly logger: Logger
  /** `--node-deletion-batcher-interval`: how long to wait for more nodes; 0 = only for expected ones. */
  readonly batchIntervalMs: number
}

/** A node whose instance must be removed. */
export interface RemovalTarget {
  /** As it was when it was chosen. */
  readonly node: Node
  readonly groupId: string
  /** Value of its deletion taint. */
  readonly taintValue: string
}

interface Waiting {
  readonly target: RemovalTarget
  readonly resolve: (failure: DeletionFailure | undefined) => void
  readonly reject: (error: unknown) => void
}

/** How long an expected node that hangs may delay others. */
const patienceMs = 20_000

export class CloudRemover {
  readonly #deps: RemoverDependencies
  /** Waiting nodes by group id; a group in progress has an entry. */
  readonly #queues = new Map<string, Waiting[]>()
  /** Expected nodes that have not arrived, by group id. */
  readonly #expected = new Map<string, Set<string>>()
  /** Called when no more nodes are expected, by group id. */
  readonly #complete = new Map<string, () => void>()

  constructor(deps: RemoverDependencies) {
    this.#deps = deps
  }

  /** Announces a node, so that nodes that are due wait for it. */
  expect(groupId: string, nodeName: string): void {
    const expected = this.#expected.get(groupId) ?? new Set()
    this.#expected.set(groupId, expected.add(nodeName))
  }

  /** The node has arrived, or will not arrive. */
  expectNoLonger(groupId: string, nodeName: string): void {
    const expected = this.#expected.get(groupId)
    if (expected?.delete(nodeName) !== true || expected.size > 0) return
    this.#expected.delete(groupId)
    this.#complete.get(groupId)?.()
  }

  /** @returns why the instance still exists; undefined if it is gone. Rejects when the signal aborts. */
  remove(target: RemovalTarget, signal: AbortSignal): Promise<DeletionFailure | undefined> {
    this.expectNoLonger(target.groupId, target.node.metadata.name)
    return new Promise((resolve, reject) => {
      const waiting = { target, resolve, reject }
      const queue = this.#queues.get(target.groupId)
      if (queue !== undefined) {
        queue.push(waiting)
        return
      }
      this.#queues.set(target.groupId, [waiting])
      void this.#work(target.groupId, signal)
    })
  }

  async #work(groupId: string, signal: AbortSignal): Promise<void> {
    const queue = this.#queues.get(groupId) ?? []
    while (queue.length > 0) {
      let batch: readonly Waiting[] = []
      try {
        await this.#gather(groupId, signal)
        batch = queue.splice(0)
        await this.#removeBatch(groupId, batch, signal)
      } catch (error) {
        // Aborted: the whole queue ends.
        for (const { reject } of [...batch, ...queue.splice(0)]) reject(error)
      }
    }
    this.#queues.delete(groupId)
  }

  async #gather(groupId: string, signal: AbortSignal): Promise<void> {
    const { batchIntervalMs, clock } = this.#deps
    if (batchIntervalMs > 0) await clock.sleep(batchIntervalMs, signal)
    if (!this.#expected.has(groupId)) return
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const done = () => {
      resolve(undefined)
    }
    const cancel = clock.after(patienceMs, done)
    signal.addEventListener('abort', done, { once: true })
    this.#complete.set(groupId, done)
    await promise
    this.#complete.delete(groupId)
    signal.removeEventListener('abort', done)
    cancel()
    signal.throwIfAborted()
  }

  async #removeBatch(groupId: string, batch: readonly Waiting[], signal: AbortSignal): Promise<void> {
    const confirmed: { readonly waiting: Waiting; readonly providerId: string }[] = []
    for (const waiting of batch) {
      const answer = await this.#witness(waiting.target, signal)
      if (answer.kind === 'refused') waiting.resolve(answer.failure)
      else confirmed.push({ waiting, providerId: answer.providerId })
    }
    if (confirmed.length === 0) return
    const providerIds = confirmed.map(({ providerId }) => providerId)
    try {
      await this.#deps.nodeGroups.deleteInstances(groupId, providerIds, signal)
      for (const { waiting } of confirmed) waiting.resolve(undefined)
    } catch (error) {
      if (signal.aborted) throw error
      const message = `node group ${groupId} did not remove it: ${messageOf(error)}`
      const staying = await this.#staying(groupId, signal)
      for (const { waiting, providerId } of confirmed) {
        const { name } = waiting.target.node.metadata
        // Clouds may write the ID of a node otherwise than its kubelet.
        const isGone = staying?.every(
          (member) => member.providerId !== providerId && member.nodeName !== name,
        )
        waiting.resolve(isGone === true ? undefined : { stage: 'cloud', message })
      }
    }
  }

  /**
   * Checks everything again before a removal: the API server's Node is the chosen one and has the taint of this
   * deletion, the cloud has it in this group, and no pod that must move runs on it.
   */
  async #witness({ node, groupId, taintValue }: RemovalTarget, signal: AbortSignal): Promise<Witness> {
    const { name } = node.metadata
    const newest = await this.#deps.reader.node(name, signal).catch((error: unknown) => {
      if (signal.aborted) throw error
      return { failure: messageOf(error) }
    })
    if (newest === undefined) return refused(`node ${name} is gone`)
    if ('failure' in newest) return refused(`node ${name} could not be read: ${newest.failure}`)
    const changed = changeOf(newest, node, taintValue)
    if (changed !== undefined) return refused(`node ${name} ${changed}`)
    const group = await this.#deps.nodeGroups.groupOf(newest, signal)
    if (group.kind !== 'group' || group.groupId !== groupId)
      return refused(`node ${name} is not known to be in node group ${groupId}`)
    const providerId = newest.spec?.providerID || group.providerId
    if (providerId === undefined)
      return refused(
        `node ${name} has no provider ID (spec.providerID), and node group ${groupId} has no member that names it`,
      )
    const hold = this.#deps.nodeGroups.holdOf?.(groupId)
    if (hold !== undefined) return refused(`node group ${groupId} is held: ${hold.reason}`)
    const look = await checkNodeNow(name, this.#deps, signal)
    if (look.kind === 'stays') return refused(look.why)
    const [moved] = look.toMove
    return moved === undefined
      ? { kind: 'confirmed', providerId }
      : refused(`pod ${nameOf(moved)} was bound to it meanwhile`, 'newcomer')
  }

  /**
   * Members that remain after a failed call. The cloud may have begun to remove them, and pods must not return to such
   * a node. Undefined if unknown.
   */
  async #staying(groupId: string, signal: AbortSignal): Promise<readonly GroupInstance[] | undefined> {
    try {
      const instances = await this.#deps.nodeGroups.instances(groupId, signal)
      return instances.filter(({ state }) => state !== 'deleting')
    } catch (error) {
      if (signal.aborted) throw error
      this.#deps.logger.warn('the members of a node group cannot be read', { nodeGroup: groupId, error })
      return undefined
    }
  }
}

/** Why a Node as just read is no longer the one to remove: a clause; undefined if it is. */
function changeOf(newest: Node, chosen: Node, taintValue: string): string | undefined {
  const isSame =
    newest.metadata.uid === chosen.metadata.uid &&
    (newest.spec?.providerID ?? '') === (chosen.spec?.providerID ?? '')
  if (!isSame) return 'is another one than the one that was chosen'
  const taint = hardTaintOf(newest)
  if (taint === undefined || (taint.value ?? '') !== taintValue)
    return 'no longer bears the taint of this deletion'
  return isScaleDownDisabled(newest) ? 'has been exempted from scale-down' : undefined
}

type Witness =
  | { readonly kind: 'confirmed'; readonly providerId: string }
  | { readonly kind: 'refused'; readonly failure: DeletionFailure }

function refused(message: string, stage: DeletionFailure['stage'] = 'witness'): Witness {
  return { kind: 'refused', failure: { stage, message } }
}
