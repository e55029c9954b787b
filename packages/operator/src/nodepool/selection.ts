/** `nodepool.selection`: takes the NodePools that `--node-pools` selects, and names those that none or several select. */
import { karpenterKinds, kinds, type Lease, matchesSelector, type NodePool } from '@tenon/api'
import { done, type EventRecorder, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import type { NodePoolSelection } from '../settings.ts'
import type { Caches } from '../state/caches.ts'
import { controllerAnnotation, controllerOf } from '../state/nodepools/node-pool-selection.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly client: Pick<KubeClient, 'get' | 'patch'>
  readonly events: EventRecorder
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Logger
}

/** How long a NodePool may be without a controller before that is reported, and how often leases are read. */
const pollMs = 60_000
/** How long a lease must have run out before its NodePools are taken: its next leader may be about to start. */
const graceMs = 60_000
const eventTtlMs = 5 * 60_000

export class NodePoolSelecting implements ControllerSpec {
  readonly name = 'nodepool.selection'
  readonly concurrency = { least: 1, most: 1 }
  readonly #deps: Dependencies
  readonly #selection: NodePoolSelection
  /** Since when a NodePool has no controller, in Unix milliseconds by name. */
  readonly #withoutSince = new Map<string, number>()
  /** Whether the controller runs, as its lease said at that time, by its name. */
  readonly #leases = new Map<string, { readonly atMs: number; readonly runs: boolean }>()

  constructor(deps: Dependencies, selection: NodePoolSelection) {
    this.#deps = deps
    this.#selection = selection
  }

  watch(enqueue: Enqueue): void {
    enqueueChanged(this.#deps.caches.nodePools, enqueue)
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const { caches } = this.#deps
    const { controller, selector } = this.#selection
    const pool = caches.nodePools.get({ name })
    const holder = pool && controllerOf(pool)
    if (pool === undefined || holder !== undefined) this.#withoutSince.delete(name)
    if (pool === undefined) return done
    const isSelected = matchesSelector(selector, pool.metadata.labels ?? {})
    if (holder === controller) return isSelected ? done : await this.#write(pool, undefined)
    if (holder === undefined) return isSelected ? await this.#write(pool, controller) : this.#without(pool)
    const runs = await this.#runs(holder)
    if (isSelected && !runs) return await this.#write(pool, controller)
    if (isSelected) this.#reportTwice(pool, holder)
    else if (!runs) this.#reportNone(pool, `${holder}, which served it, does not run any more`)
    return { kind: 'after', delayMs: pollMs }
  }

  /** Takes the pool for this controller, or leaves it, unless it has changed meanwhile. */
  async #write(pool: NodePool, controller: string | undefined): Promise<ReconcileResult> {
    const { client, logger } = this.#deps
    const { name, resourceVersion = '' } = pool.metadata
    const metadata = { annotations: { [controllerAnnotation]: controller ?? null } }
    try {
      await client.patch(karpenterKinds.nodePool, { name }, { metadata }, { resourceVersion })
    } catch (error) {
      if (isKubeError(error, 'conflict')) return { kind: 'backoff' }
      if (isKubeError(error, 'notFound')) return done
      throw error
    }
    const message = controller === undefined ? 'left nodepool to other controllers' : 'took nodepool'
    logger.info(message, { NodePool: { name }, before: controllerOf(pool) ?? '' })
    return done
  }

  #without(pool: NodePool): ReconcileResult {
    const { name } = pool.metadata
    const now = this.#deps.clock.now()
    const sinceMs = this.#withoutSince.get(name) ?? now
    this.#withoutSince.set(name, sinceMs)
    if (now - sinceMs >= pollMs) this.#reportNone(pool, 'no controller that runs selects its labels')
    return { kind: 'after', delayMs: pollMs }
  }

  #reportNone(object: NodePool, because: string): void {
    const { controller, text } = this.#selection
    this.#warn(
      object,
      'NodePoolNotSelected',
      `Launches no nodes: ${because}. ${controller} selects "${text}" (--node-pools)`,
    )
  }

  #reportTwice(object: NodePool, holder: string): void {
    const { controller, text } = this.#selection
    this.#warn(
      object,
      'NodePoolSelectedTwice',
      `${holder} serves it, and ${controller} selects it, too, by "${text}" (--node-pools): change a selector or the labels`,
    )
  }

  #warn(object: NodePool, reason: string, message: string): void {
    this.#deps.events.record({
      object,
      type: 'Warning',
      reason,
      message,
      dedupe: [reason, object.metadata.uid ?? ''],
      dedupeTtlMs: eventTtlMs,
    })
  }

  /** Whether the controller holds its lease, as far as this process may read it. */
  async #runs(controller: string): Promise<boolean> {
    const { client, clock } = this.#deps
    const known = this.#leases.get(controller)
    if (known !== undefined && clock.now() - known.atMs < pollMs / 2) return known.runs
    const [namespace = '', name = ''] = controller.split('/')
    let runs: boolean
    try {
      runs = isHeld(await client.get(kinds.lease, { namespace, name }), clock.now())
    } catch (error) {
      if (!isKubeError(error, 'forbidden')) throw error
      runs = true
    }
    this.#leases.set(controller, { atMs: clock.now(), runs })
    return runs
  }
}

function isHeld(lease: Lease | undefined, nowMs: number): boolean {
  const { holderIdentity = '', renewTime = '', leaseDurationSeconds = 0 } = lease?.spec ?? {}
  const renewedMs = Date.parse(renewTime)
  // Without a time, nobody knows when it ran out.
  if (Number.isNaN(renewedMs)) return holderIdentity !== ''
  return nowMs < renewedMs + leaseDurationSeconds * 1000 + graceMs
}
