import {
  compareResourceVersions,
  ConditionSet,
  karpenterKinds,
  type Node,
  type NodeClaim,
  terminationFinalizer,
} from '@tenon/api'
import { done, isKubeError, type KubeClient, mergePatchOf, type ReconcileResult } from '@tenon/kube'
import { type Clock, inTrace, type Listeners } from '@tenon/runtime'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../../controller.ts'
import { type Caches, indexes, nodeNamesOf } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { nodeClaimConditions } from '../../state/conditions.ts'
import { claimNamesOf, isLifecycleChange, isMoreThanHeartbeat } from '../../state/nodes/node-changes.ts'
import { isUnreadable } from '../../state/readable.ts'
import type { ClaimTraces } from '../claim-traces.ts'

/** A claim with the changes of this pass so far. */
export interface ClaimDraft {
  readonly claim: NodeClaim
  readonly conditions: ConditionSet
  /** The claim's Node as this pass stored it; the cache may show an older one. */
  readonly node?: Node
}

export type StageResult =
  | {
      readonly kind: 'continue'
      readonly draft: ClaimDraft
      readonly requeueMs?: number
      /** Asks for another pass with growing pauses. */
      readonly isBackingOff?: boolean
      readonly error?: unknown
      /** Called once the draft is stored, so that a repeated pass counts nothing twice. */
      readonly afterStore?: () => Promise<void> | void
      /** Later stages wait for the next pass, as this one saw old data. */
      readonly isLast?: boolean
    }
  /** The claim is being deleted, which ends the pass. */
  | { readonly kind: 'deleted' }

/** Rejects if the cloud or the API server failed; later stages run all the same. */
type LifecycleStage = (draft: ClaimDraft, signal: AbortSignal) => Promise<StageResult>

interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly clock: Clock
  /** In order. */
  readonly stages: readonly LifecycleStage[]
  /** Claims whose Nodes may open for pods after this time. */
  readonly due: Listeners<{ readonly name: string; readonly afterMs: number }>
  /** Takes the next step to delete a claim. */
  readonly finalize: (claim: NodeClaim, signal: AbortSignal) => Promise<ReconcileResult>
  readonly claimTraces: ClaimTraces | undefined
}

const backoff: ReconcileResult = { kind: 'backoff' }
/** When a claim is reconciled again after a pass that wrote, unless a change comes first. */
const settleMs = 1000
/** How long a pass waits for the cache to show the last write. */
const catchUpMs = 10_000

/** `nodeclaim.lifecycle`: takes a claim through its stages until its Node takes pods, and through its deletion (lifecycle.md 3). */
export class NodeClaimLifecycle implements ControllerSpec {
  readonly name = 'nodeclaim.lifecycle'
  readonly concurrency = { least: 1000, most: 5000 }
  readonly backoff = { baseMs: 1000, capMs: 60_000 }
  readonly perSecond = 10
  readonly #deps: Dependencies
  /** Claims as the last pass stored them, by name, until the cache shows them. */
  readonly #written = new Map<string, { readonly claim: NodeClaim; readonly untilMs: number }>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches, due } = this.#deps
    const { nodeClaims, nodes, resourceSlices } = caches
    due.add(({ name, afterMs }) => {
      enqueue(name, afterMs)
    })
    enqueueChanged(nodeClaims, enqueue, isLifecycleChange)
    nodes.onChange((change) => {
      if (isMoreThanHeartbeat(change)) for (const name of claimNamesOf(caches, change.object)) enqueue(name)
    })
    resourceSlices?.onChange((change) => {
      for (const nodeName of nodeNamesOf(change.object)) {
        const node = nodes.get({ name: nodeName })
        if (node !== undefined) for (const name of claimNamesOf(caches, node)) enqueue(name)
      }
    })
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { caches, claimTraces, finalize, state } = this.#deps
    const cached = caches.nodeClaims.get({ name })
    const settlingMs = this.#settlingMs(name, cached)
    if (cached === undefined) claimTraces?.forget(name)
    if (cached === undefined || !state.isManaged(cached)) return done
    // An old claim would lead to the same writes again, and to conflicts.
    if (settlingMs > 0) return { kind: 'after', delayMs: settlingMs }
    if (cached.metadata.deletionTimestamp !== undefined) {
      claimTraces?.failed(cached)
      return await finalize(cached, signal)
    }
    // Whether an unreadable Node is registered is unknown, so its claim must not be deleted for that.
    if (nodesOf(caches, cached).some((node) => isUnreadable(node))) return done
    return await inTrace(claimTraces?.current(cached), async () => {
      const claim = await this.#withFinalizer(cached)
      return claim === undefined ? backoff : await this.#advance(claim, signal)
    })
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
      // The answer may be older than this write.
      return stored.metadata.finalizers?.includes(terminationFinalizer) === true ? stored : undefined
    } catch (error) {
      if (isKubeError(error, 'conflict', 'notFound')) return undefined
      throw error
    }
  }

  async #advance(claim: NodeClaim, signal: AbortSignal): Promise<ReconcileResult> {
    const before = ConditionSet.of(claim, nodeClaimConditions)
    let draft: ClaimDraft = { claim, conditions: before }
    let requeueMs = Number.POSITIVE_INFINITY
    let isBackingOff = false
    const errors: unknown[] = []
    const afterStore: (() => Promise<void> | void)[] = []
    for (const stage of this.#deps.stages) {
      const result = await stage(draft, signal).catch(
        (error: unknown): StageResult => ({ kind: 'continue', draft, error }),
      )
      if (result.kind === 'deleted') return done
      draft = result.draft
      requeueMs = Math.min(requeueMs, result.requeueMs ?? Number.POSITIVE_INFINITY)
      isBackingOff ||= result.isBackingOff === true
      if (result.error !== undefined) errors.push(result.error)
      if (result.afterStore !== undefined) afterStore.push(result.afterStore)
      if (result.isLast === true) break
    }
    const outcome = await this.#store(claim, draft)
    if (outcome === 'stored') {
      this.#deps.claimTraces?.advanced(draft.claim, before, draft.conditions)
      for (const report of afterStore) await report()
    }
    if (errors.length === 1) throw errors[0]
    if (errors.length > 1)
      throw new AggregateError(errors, errors.map((e) => (e as Error).message).join('; '))
    if (outcome === 'conflict' || isBackingOff) return backoff
    if (outcome === 'stored') return { kind: 'after', delayMs: Math.min(requeueMs, settleMs) }
    return Number.isFinite(requeueMs) ? { kind: 'after', delayMs: requeueMs } : done
  }

  /**
   * Stores what the pass changed, unless the claim has changed meanwhile: the list of conditions is replaced as a whole,
   * and other controllers set conditions, too.
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

/** The Nodes of the claim's instance, and the one registered before, which may have lost its provider ID. */
function nodesOf({ nodes }: Pick<Caches, 'nodes'>, { status }: NodeClaim): readonly Node[] {
  const { providerID = '', nodeName = '' } = status ?? {}
  const named = nodeName === '' ? undefined : nodes.get({ name: nodeName })
  const found = providerID === '' ? [] : nodes.byIndex(indexes.byProviderId, providerID)
  return named === undefined ? found : [...found, named]
}
