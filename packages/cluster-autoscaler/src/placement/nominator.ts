/**
 * Nominates each pod for the new node that it is planned for: `--planned-placement` (planned-placement.md).
 */
import type { Node, Pod } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import type { NodeGroups } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import type { ClusterWriter, ClusterCache } from '../model.ts'
import { hasEnded } from '../pods/classes.ts'
import { isBeingDeleted, isNodeReady } from '../registry/node-state.ts'
import type { PlannedPod, PodPlans } from './pod-plans.ts'

/**
 * Minimum time between nominations of a pod. The scheduler removes a nomination while the pod does not fit.
 */
const againMs = 500
/** No pod is nominated for a node that has been ready longer, as the scheduler has filled it by then. */
const openMs = 30_000
/** Pause between two passes over all pods. */
const pauseMs = 100
/** Permissions may be granted later. */
const refusedMs = 10 * 60_000
/** Concurrent writes. */
const atOnce = 8

export interface NominatorDependencies {
  readonly plans: PodPlans
  readonly cache: Pick<ClusterCache, 'nodes' | 'pods'>
  readonly nodeGroups: Pick<NodeGroups, 'groupOf'>
  readonly writer: Pick<ClusterWriter, 'nominate'>
  readonly clock: Clock
  readonly logger: Logger
}

/** Level-based: compares plans with the current state, and writes missing nominations. */
export class Nominator {
  readonly #deps: NominatorDependencies
  /** When each pod was last nominated, by UID. */
  readonly #writtenMs = new Map<string, number>()
  readonly #groupOf = new Map<string, string>()
  #isBusy = false
  #isWanted = false
  #cancel: (() => void) | undefined
  #refusedUntilMs = Number.NEGATIVE_INFINITY
  #isRefusalTold = false

  constructor(deps: NominatorDependencies) {
    this.#deps = deps
  }

  /** Runs a pass, now or after the one that is running. Never rejects. */
  async look(signal: AbortSignal): Promise<void> {
    this.#isWanted = true
    if (this.#isBusy) return
    this.#isBusy = true
    try {
      while (this.#isWanted && !signal.aborted) {
        this.#isWanted = false
        await this.#lookOnce(signal)
        if (this.#isWanted) await this.#deps.clock.sleep(pauseMs, signal)
      }
    } catch (error) {
      if (!signal.aborted) this.#deps.logger.warn('pods could not be nominated', { error })
    } finally {
      this.#isBusy = false
    }
  }

  async #lookOnce(signal: AbortSignal): Promise<void> {
    const { plans, clock } = this.#deps
    if (clock.monotonic() < this.#refusedUntilMs) return
    if (!plans.awaitsNodes && plans.wishes.length === 0) return
    const waiting = await this.#updatePlans(signal)
    const due: (PlannedPod & { readonly pod: Pod })[] = []
    let isAnyLater = false
    for (const wish of this.#openWishes()) {
      const pod = waiting.get(wish.uid)
      if (pod === undefined || !this.#lacks(pod, wish.node)) continue
      const leftMs = (this.#writtenMs.get(wish.uid) ?? Number.NEGATIVE_INFINITY) + againMs - clock.now()
      if (leftMs > 0) isAnyLater = true
      else due.push({ ...wish, pod })
    }
    const queue = due.values()
    const worker = async () => {
      for (const each of queue) isAnyLater ||= await this.#nominate(each, signal)
    }
    await Promise.all(Array.from({ length: atOnce }, worker))
    if (isAnyLater) this.#lookLater(signal)
  }

  /** @returns pods without a node, by UID. */
  async #updatePlans(signal: AbortSignal): Promise<ReadonlyMap<string, Pod>> {
    const { plans, cache, nodeGroups, clock } = this.#deps
    for (const node of cache.nodes()) {
      const { name } = node.metadata
      if (this.#groupOf.has(name) || !plans.mayBe(name)) continue
      const found = await nodeGroups.groupOf(node, signal)
      // An unresolved group is retried in the next pass.
      if (found.kind !== 'unresolved') this.#groupOf.set(name, found.kind === 'group' ? found.groupId : '')
    }
    const nodes = cache.nodes()
    const waiting = new Map<string, Pod>()
    for (const pod of cache.pods()) if (isWaiting(pod)) waiting.set(pod.metadata.uid ?? '', pod)
    plans.update({
      nodes,
      groupOf: this.#groupOf,
      waiting: new Set(waiting.keys()),
      nowMs: clock.now(),
    })
    const names = new Set(nodes.map(({ metadata }) => metadata.name))
    for (const name of this.#groupOf.keys()) if (!names.has(name)) this.#groupOf.delete(name)
    for (const uid of this.#writtenMs.keys()) if (!waiting.has(uid)) this.#writtenMs.delete(uid)
    return waiting
  }

  /** Planned pods whose node still accepts nominations. */
  #openWishes(): readonly PlannedPod[] {
    const { plans, cache, clock } = this.#deps
    const nodes = new Map(cache.nodes().map((node) => [node.metadata.name, node]))
    const takes = (node: Node | undefined) =>
      node?.metadata.deletionTimestamp === undefined &&
      node !== undefined &&
      !isBeingDeleted(node) &&
      !isOpenForLong(node, clock.now())
    return plans.wishes.filter(({ node }) => takes(nodes.get(node)))
  }

  /** Whether the pod has no nomination, or one of an earlier plan. Nominations by others stay. */
  #lacks(pod: Pod, node: string): boolean {
    const present = pod.status?.nominatedNodeName ?? ''
    return present === '' || (present !== node && this.#deps.plans.isOurs(pod))
  }

  /** @returns whether to retry soon. */
  async #nominate(wish: PlannedPod & { readonly pod: Pod }, signal: AbortSignal): Promise<boolean> {
    const { plans, writer, clock, logger } = this.#deps
    if (clock.monotonic() < this.#refusedUntilMs) return false
    const { pod, node } = wish
    // Recorded first, as the watch may deliver the change before the response arrives.
    plans.nominate(wish)
    this.#writtenMs.set(wish.uid, clock.now())
    try {
      await writer.nominate(pod, node, signal)
      logger.debug('pod nominated', { pod: `${pod.metadata.namespace}/${pod.metadata.name}`, node })
      return false
    } catch (error) {
      signal.throwIfAborted()
      if (isKubeError(error, 'forbidden')) this.#refuse(error)
      else if (!isKubeError(error, 'notFound')) {
        logger.debug('pod not nominated yet', {
          pod: `${pod.metadata.namespace}/${pod.metadata.name}`,
          error,
        })
        return true
      }
      return false
    }
  }

  #refuse(error: Error): void {
    const { clock, logger } = this.#deps
    this.#refusedUntilMs = clock.monotonic() + refusedMs
    if (this.#isRefusalTold) return
    this.#isRefusalTold = true
    logger.warn(
      '--planned-placement has no effect: grant the verb update on pods/status to nominate pods, or leave the flag out',
      { error, retryInMinutes: refusedMs / 60_000 },
    )
  }

  #lookLater(signal: AbortSignal): void {
    this.#cancel?.()
    this.#cancel = this.#deps.clock.after(againMs, () => {
      this.#cancel = undefined
      void this.look(signal)
    })
  }
}

function isWaiting(pod: Pod): boolean {
  return (pod.spec.nodeName ?? '') === '' && pod.metadata.deletionTimestamp === undefined && !hasEnded(pod)
}

function isOpenForLong(node: Node, nowMs: number): boolean {
  if (!isNodeReady(node)) return false
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')
  return nowMs - Date.parse(ready?.lastTransitionTime ?? '') > openMs
}
