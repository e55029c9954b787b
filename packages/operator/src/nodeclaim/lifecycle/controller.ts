/** `nodeclaim.lifecycle`: from a claim to a node that takes pods, and to its end (lifecycle.md 3). */
import {
  compareResourceVersions,
  ConditionSet,
  karpenterKinds,
  type Node,
  type NodeClaim,
  terminationFinalizer,
} from '@tenon/api'
import { done, isKubeError, type KubeClient, mergePatchOf, type ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { type Caches, indexes, nodeNamesOf } from '../../state/caches.ts'
import { isUnreadable } from '../../state/readable.ts'
import { nodeClaimConditions } from '../../state/conditions.ts'
import type { ClaimDraft, LifecycleStage, StageResult } from './stage.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'
import { isLifecycleChange } from '../../state/nodes/node-changes.ts'
import { claimNamesOf, isMoreThanHeartbeat } from '../../state/nodes/node-changes.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodes' | 'resourceSlices'>
  readonly state: Pick<ClusterState, 'isManaged'>
  readonly clock: Clock
  /** In the order of a claim's life. */
  readonly stages: readonly LifecycleStage[]
  /** One step of the end of a claim that is being deleted. */
  readonly finalize: (claim: NodeClaim, signal: AbortSignal) => Promise<ReconcileResult>
}

const backoff: ReconcileResult = { kind: 'backoff' }
/** When a claim is reconciled again after a pass that wrote, unless a change comes first. */
const settleMs = 1000
/** How long a pass waits for the cache to show the last write. */
const catchUpMs = 10_000

/** Reconciles one NodeClaim through its stages. */
export class NodeClaimLifecycle implements ControllerSpec {
  readonly name = 'nodeclaim.lifecycle'
  readonly concurrency = { least: 1000, most: 5000 }
  readonly backoff = { baseMs: 1000, capMs: 60_000 }
  readonly perSecond = 10
  readonly #deps: Dependencies
  /** Claims as passes wrote them last, by name, until the cache shows it. */
  readonly #written = new Map<string, { readonly claim: NodeClaim; readonly untilMs: number }>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { nodeClaims, nodes, resourceSlices } = this.#deps.caches
    for (const { due } of this.#deps.stages)
      due?.add(({ name, afterMs }) => {
        enqueue(name, afterMs)
      })
    enqueueChanged(nodeClaims, enqueue, isLifecycleChange)
    nodes.onChange((change) => {
      if (isMoreThanHeartbeat(change)) this.#enqueueClaimsOf(change.object, enqueue)
    })
    resourceSlices?.onChange((change) => {
      for (const name of nodeNamesOf(change.object)) {
        const node = nodes.get({ name })
        if (node !== undefined) this.#enqueueClaimsOf(node, enqueue)
      }
    })
  }

  #enqueueClaimsOf(node: Node, enqueue: Enqueue): void {
    for (const name of claimNamesOf(this.#deps.caches, node)) enqueue(name)
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { caches, finalize, state } = this.#deps
    const cached = caches.nodeClaims.get({ name })
    const settlingMs = this.#settlingMs(name, cached)
    if (cached === undefined || !state.isManaged(cached)) return done
    // An old claim would lead to the same writes again, and to conflicts.
    if (settlingMs > 0) return { kind: 'after', delayMs: settlingMs }
    if (cached.metadata.deletionTimestamp !== undefined) return await finalize(cached, signal)
    // An unreadable Node does not say what it lacks; its claim must not end for that.
    if (nodesOf(caches, cached).some((node) => isUnreadable(node))) return done
    const claim = await this.#withFinalizer(cached)
    return claim === undefined ? backoff : await this.#advance(claim, signal)
  }

  /** How long the cache may still show an older claim than the last pass stored; 0 once it has caught up. */
  #settlingMs(name: string, cached: NodeClaim | undefined): number {
    const written = this.#written.get(name)
    if (written === undefined) return 0
    const { claim, untilMs } = written
    const leftMs = untilMs - this.#deps.clock.now()
    const { uid, resourceVersion = '' } = cached?.metadata ?? {}
    const isBehind =
      uid === claim.metadata.uid &&
      (compareResourceVersions(resourceVersion, claim.metadata.resourceVersion ?? '') ?? 0) < 0
    if (isBehind && leftMs > 0) return leftMs
    this.#written.delete(name)
    return 0
  }

  /** Nothing is launched before the finalizer is stored. */
  async #withFinalizer(claim: NodeClaim): Promise<NodeClaim | undefined> {
    const finalizers = claim.metadata.finalizers ?? []
    if (finalizers.includes(terminationFinalizer)) return claim
    try {
      const stored = await this.#deps.client.patch(
        karpenterKinds.nodeClaim,
        { name: claim.metadata.name },
        { metadata: { finalizers: [...finalizers, terminationFinalizer] } },
        { resourceVersion: claim.metadata.resourceVersion ?? '' },
      )
      // An old answer does not show this write.
      return stored.metadata.finalizers?.includes(terminationFinalizer) === true ? stored : undefined
    } catch (error) {
      if (isKubeError(error, 'conflict', 'notFound')) return undefined
      throw error
    }
  }

  async #advance(claim: NodeClaim, signal: AbortSignal): Promise<ReconcileResult> {
    let draft: ClaimDraft = { claim, conditions: ConditionSet.of(claim, nodeClaimConditions) }
    let requeueMs = Number.POSITIVE_INFINITY
    let isBackingOff = false
    const errors: unknown[] = []
    const afterStore: (() => Promise<void> | void)[] = []
    for (const stage of this.#deps.stages) {
      const result = await stage
        .run(draft, signal)
        .catch((error: unknown): StageResult => ({ kind: 'continue', draft, error }))
      if (result.kind === 'deleted') return done
      draft = result.draft
      requeueMs = Math.min(requeueMs, result.requeueMs ?? Number.POSITIVE_INFINITY)
      isBackingOff ||= result.isBackingOff === true
      if (result.error !== undefined) errors.push(result.error)
      if (result.afterStore !== undefined) afterStore.push(result.afterStore)
      if (result.isLast === true) break
    }
    const outcome = await this.#store(claim, draft)
    if (outcome === 'stored') for (const tell of afterStore) await tell()
    if (errors.length === 1) throw errors[0]
    if (errors.length > 1)
      throw new AggregateError(errors, errors.map((e) => (e as Error).message).join('; '))
    if (outcome === 'conflict' || isBackingOff) return backoff
    if (outcome === 'stored') return { kind: 'after', delayMs: Math.min(requeueMs, settleMs) }
    return Number.isFinite(requeueMs) ? { kind: 'after', delayMs: requeueMs } : done
  }

  /**
   * Stores what the pass changed. Both writes are optimistic: the condition list is replaced as a
   * whole, and another controller may have set one of its own meanwhile.
   */
  async #store(
    before: NodeClaim,
    { claim, conditions }: ClaimDraft,
  ): Promise<'unchanged' | 'stored' | 'conflict'> {
    const { client, clock } = this.#deps
    const key = { name: before.metadata.name }
    const metadata = mergePatchOf(
      { labels: before.metadata.labels, annotations: before.metadata.annotations },
      { labels: claim.metadata.labels, annotations: claim.metadata.annotations },
    )
    const status = mergePatchOf(before.status ?? {}, { ...claim.status, conditions: conditions.conditions })
    const lock = ({ metadata: { resourceVersion } }: NodeClaim) =>
      resourceVersion === undefined ? {} : { resourceVersion }
    try {
      let current =
        metadata === undefined
          ? before
          : await client.patch(karpenterKinds.nodeClaim, key, { metadata }, lock(before))
      if (status !== undefined) {
        current = await client.patch(
          karpenterKinds.nodeClaim,
          key,
          { status },
          { subresource: 'status', ...lock(current) },
        )
      }
      if (current !== before)
        this.#written.set(key.name, { claim: current, untilMs: clock.now() + catchUpMs })
    } catch (error) {
      if (isKubeError(error, 'conflict')) return 'conflict'
      if (isKubeError(error, 'notFound')) return 'unchanged'
      throw error
    }
    return metadata !== undefined || status !== undefined ? 'stored' : 'unchanged'
  }
}

/** With the Node that the claim had before, even if it has lost its provider ID. */
function nodesOf({ nodes }: Pick<Caches, 'nodes'>, { status }: NodeClaim): readonly Node[] {
  const { providerID = '', nodeName = '' } = status ?? {}
  const named = nodeName === '' ? undefined : nodes.get({ name: nodeName })
  const found = providerID === '' ? [] : nodes.byIndex(indexes.byProviderId, providerID)
  return named === undefined ? found : [...found, named]
}
