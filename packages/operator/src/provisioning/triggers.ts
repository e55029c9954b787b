/** Triggers a batch: pending pods, and nodes that are deleted (scheduling.md 3, "Triggers"). */
import type { Clock } from '@tenon/runtime'
import { isConditionTrue, type Node, type Pod } from '@tenon/api'
import type { ObjectKey } from '@tenon/kube'
import { isSameValue } from '../state/same-value.ts'
import { isDisrupted } from '../state/nodes/state-node.ts'
import type { Batcher } from './batcher.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Settings } from '../settings.ts'

interface Dependencies {
  readonly caches: Pick<
    Caches,
    'capacityQuotas' | 'deviceClasses' | 'nodeClaims' | 'nodePools' | 'nodes' | 'pods'
  >
  readonly state: Pick<
    ClusterState,
    'buffers' | 'limitReservations' | 'plans' | 'podDecisions' | 'pods' | 'requests'
  >
  readonly batcher: Batcher
  readonly clock: Clock
  readonly settings: Pick<Settings, 'pendingRetryMs'>
}

/** An object to check again later. */
interface Recheck {
  readonly uid: string
  readonly atMs: number
  /** Whether the object still needs a decision. */
  readonly isDue: () => boolean
}

/** Triggers for each object as long as it needs a decision: at each change, and periodically. */
export class Triggers {
  readonly #deps: Dependencies
  /** In order of time: every recheck is the same time away from its trigger. */
  #rechecks: Recheck[] = []
  readonly #waiting = new Set<string>()
  #cancelTimer: (() => void) | undefined

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Follows the caches until the returned function is called. */
  follow(): () => void {
    const { caches, state } = this.#deps
    const stops = [
      caches.pods.onChange((change) => {
        if (change.kind === 'deleted') return
        const old = change.kind === 'updated' ? change.old : undefined
        this.#seePod(change.object, old)
        this.#seeRoomTaken(change.object, old)
      }),
      state.pods.onExpected((pod) => {
        this.#seePod(pod, undefined)
      }),
      caches.nodes.onChange(({ kind, object }) => {
        if (kind === 'deleted' || object.metadata.deletionTimestamp !== undefined) this.#seeGone(object)
        if (kind !== 'deleted') this.#seeNode(object)
      }),
      // The pods of a node that will not come need another one at once.
      state.plans.onDropped((uids) => {
        for (const uid of uids)
          if (state.pods.unplaced(uid) !== undefined || state.requests.has(uid))
            this.#deps.batcher.trigger(uid)
      }),
      // A NodePool that has just become usable may serve pending pods at once.
      caches.nodePools.onChange(() => {
        if (this.#waiting.size > 0) this.#deps.batcher.trigger('nodepools')
      }),
      // A class may serve an extended resource that pods wait for.
      caches.deviceClasses?.onChange(() => {
        if (this.#waiting.size > 0) this.#deps.batcher.trigger('deviceclasses')
      }),
      caches.capacityQuotas?.onChange((change) => {
        const isOnlyStatus = change.kind === 'updated' && isSameValue(change.old.spec, change.object.spec)
        if (this.#waiting.size > 0 && !isOnlyStatus) this.#deps.batcher.trigger('quotas')
      }),
    ].filter((stop) => stop !== undefined)
    state.limitReservations.freed.add((pool) => {
      this.#deps.batcher.trigger(`room of ${pool}`)
    })
    for (const { asked } of [state.buffers, state.requests])
      asked.add((what) => {
        this.#deps.batcher.trigger(what)
      })
    return () => {
      for (const stop of stops) stop()
      this.#cancelTimer?.()
      this.#rechecks = []
      this.#waiting.clear()
    }
  }

  #seePod(pod: Pod, old: Pod | undefined): void {
    const { clock, state } = this.#deps
    if (!state.pods.isUnplaced(pod)) return
    const uid = pod.metadata.uid ?? ''
    const isDue = () => state.pods.unplaced(uid) !== undefined
    const isWaiting = state.pods.isWaiting(pod)
    if (isWaiting) state.podDecisions.acknowledge(uid, clock.now())
    // The node planned for the pod may not come, so the pod is checked again later.
    if (isWaiting && !this.#isOnItsWay(pod, old)) this.#trigger(uid, isDue)
    else this.#remember(uid, isDue)
  }

  /** Triggers for the room of a buffer that a pod has taken; the pod may have been bound before it was seen pending. */
  #seeRoomTaken({ spec }: Pod, old: Pod | undefined): void {
    const { batcher, caches, state } = this.#deps
    const node = (spec as Partial<Pod['spec']>).nodeName ?? ''
    if (node === '' || old?.spec.nodeName === node || state.buffers.kept().size === 0) return
    const host = caches.nodes.get({ name: node })?.spec?.providerID ?? ''
    if (state.buffers.keptOn(host).length > 0) batcher.trigger(`room on ${node}`)
  }

  /** Whether the pod needs no decision: it has a plan and unchanged requests. */
  #isOnItsWay(pod: Pod, old: Pod | undefined): boolean {
    const { state } = this.#deps
    if (old === undefined || state.plans.get(pod.metadata.uid ?? '') === undefined) return false
    return state.pods.isUnplaced(old) && isSameValue(pod.spec, old.spec)
  }

  /** Whether the pod waits for an instance that was launched for it and has not joined. */
  #awaitsItsInstance(uid: string): boolean {
    const { state, caches } = this.#deps
    const target = state.plans.get(uid)?.target
    if (target?.kind !== 'claim') return false
    const claim = caches.nodeClaims.get({ name: target.name })
    return claim !== undefined && !isConditionTrue(claim, 'Initialized')
  }

  /** Gives back the room that was kept on the node for a pod. */
  #seeGone({ metadata }: Node): void {
    for (const pod of this.#deps.state.pods.nominatedTo(metadata.name))
      this.#deps.batcher.trigger(pod.metadata.uid ?? '')
  }

  #seeNode(node: Node): void {
    if (!isDisrupted(node)) return
    const uid = node.metadata.uid ?? ''
    const key = keyOf(node)
    this.#trigger(uid, () => {
      const now = this.#deps.caches.nodes.get(key)
      return now?.metadata.uid === uid && isDisrupted(now)
    })
  }

  #trigger(uid: string, isDue: () => boolean): void {
    this.#deps.batcher.trigger(uid)
    this.#remember(uid, isDue)
  }

  #remember(uid: string, isDue: () => boolean): void {
    if (this.#waiting.has(uid)) return
    this.#waiting.add(uid)
    this.#recheckLater(uid, isDue)
  }

  #recheckLater(uid: string, isDue: () => boolean): void {
    const { clock, settings } = this.#deps
    this.#rechecks.push({ uid, atMs: clock.monotonic() + settings.pendingRetryMs, isDue })
    if (this.#rechecks.length === 1) this.#arm()
  }

  /** One timer for all, until the first is due. */
  #arm(): void {
    const { clock } = this.#deps
    const [first] = this.#rechecks
    if (first === undefined) return
    this.#cancelTimer = clock.after(Math.max(0, first.atMs - clock.monotonic()), () => {
      this.#recheck()
    })
  }

  #recheck(): void {
    const now = this.#deps.clock.monotonic()
    const split = this.#rechecks.findIndex(({ atMs }) => atMs > now)
    const due = split < 0 ? this.#rechecks : this.#rechecks.slice(0, split)
    this.#rechecks = split < 0 ? [] : this.#rechecks.slice(split)
    // No timer is set here: the next one is set below.
    const { settings } = this.#deps
    for (const { uid, isDue } of due) {
      if (!isDue()) {
        this.#waiting.delete(uid)
        continue
      }
      // Thousands of pods that wait for the same instances trigger one pass together.
      this.#deps.batcher.trigger(this.#awaitsItsInstance(uid) ? 'arrivals' : uid)
      this.#rechecks.push({ uid, atMs: now + settings.pendingRetryMs, isDue })
    }
    // One last pass updates the metrics: nothing is pending any more.
    if (this.#waiting.size === 0) this.#deps.batcher.trigger('nothing')
    this.#arm()
  }
}

function keyOf({ metadata }: Pod | Node): ObjectKey {
  const { name, namespace } = metadata
  return namespace === undefined ? { name } : { name, namespace }
}
