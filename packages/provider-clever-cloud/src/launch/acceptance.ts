/** The platform's response to a new NodeGroup (clever-cloud.md 9, 20). */
import { type Cache, type Change, isKubeError, type KubeClient } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { type NodeGroupState, stateOf } from '../nodegroup/state.ts'
import { type NodeGroup, nodeGroupKind } from '../nodegroup/types.ts'

/** How long a launch waits for a response. */
const patienceMs = 15_000
/** How long the cache may be silent before the API server is asked. */
const silenceMs = 5000

/** The result of a launch. */
export type Decision =
  | Extract<NodeGroupState, { kind: 'ready' | 'accepted' | 'retrying' | 'overQuota' | 'refused' }>
  /** It existed and is gone. */
  | { readonly kind: 'vanished' }
  /** No response within 15 s. */
  | { readonly kind: 'silent' }

export interface AcceptanceDependencies {
  readonly kube: Pick<KubeClient, 'get'>
  /** Follows NodeGroups from the first call on. */
  readonly nodeGroups: () => Cache<NodeGroup>
  readonly clock: Clock
}

/** Waits for the platform's decision about single NodeGroups. */
export class Acceptance {
  readonly #deps: AcceptanceDependencies
  /** By group name. */
  readonly #watched = new Map<string, Set<WatchedGroup>>()
  #isFollowing = false

  constructor(deps: AcceptanceDependencies) {
    this.#deps = deps
  }

  /**
   * Resolves with the decision about a group, after at most 15 s.
   * @throws KubeError if the API server cannot be read, the signal's reason if it aborts.
   */
  async decisionOn(group: NodeGroup, signal?: AbortSignal): Promise<Decision> {
    const { clock } = this.#deps
    const endMs = clock.monotonic() + patienceMs
    const watched = this.#watch(group)
    try {
      for (;;) {
        const decision = decisive(watched.state)
        if (decision?.kind === 'vanished') {
          // A cache alone proves nothing.
          const now = await this.#read(group, signal)
          if (now === undefined || stateOf(now).kind === 'terminating') return decision
          watched.show(now)
        } else if (decision !== undefined) return decision
        const leftMs = endMs - clock.monotonic()
        if (leftMs <= 0) return { kind: 'silent' }
        if (await watched.changed(Math.min(silenceMs, leftMs), signal)) continue
        const now = await this.#read(group, signal)
        if (now !== undefined) watched.show(now)
        // A group that was never seen may still appear.
        else if (watched.wasSeen) return { kind: 'vanished' }
      }
    } finally {
      this.#unwatch(group, watched)
    }
  }

  #watch(group: NodeGroup): WatchedGroup {
    const { name } = group.metadata
    const watched = new WatchedGroup(this.#deps.clock, group)
    const all = this.#watched.get(name) ?? new Set()
    this.#watched.set(name, all.add(watched))
    const cache = this.#deps.nodeGroups()
    if (!this.#isFollowing) {
      this.#isFollowing = true
      cache.onChange((change) => {
        for (const each of this.#watched.get(change.object.metadata.name) ?? []) each.hear(change)
      })
    }
    const cached = cache.get({ name })
    if (cached !== undefined) watched.hear({ kind: 'added', object: cached })
    return watched
  }

  #unwatch({ metadata: { name } }: NodeGroup, watched: WatchedGroup): void {
    const all = this.#watched.get(name)
    all?.delete(watched)
    if (all?.size === 0) this.#watched.delete(name)
  }

  async #read(group: NodeGroup, signal: AbortSignal | undefined): Promise<NodeGroup | undefined> {
    signal?.throwIfAborted()
    const { name, uid } = group.metadata
    const options = signal === undefined ? {} : { signal }
    try {
      const now = await this.#deps.kube.get(nodeGroupKind, { name }, options)
      return now?.metadata.uid === uid ? now : undefined
    } catch (error) {
      signal?.throwIfAborted()
      if (isKubeError(error, 'notFound')) return undefined
      throw error
    }
  }
}

/** The last known state of a NodeGroup, from the cache and the API server. */
class WatchedGroup {
  readonly #clock: Clock
  readonly #uid: string | undefined
  #wake: (() => void) | undefined
  #isNews = false
  wasSeen = false
  #state: NodeGroupState | { readonly kind: 'vanished' }

  constructor(clock: Clock, group: NodeGroup) {
    this.#clock = clock
    this.#uid = group.metadata.uid
    this.#state = stateOf(group)
  }

  get state(): NodeGroupState | { readonly kind: 'vanished' } {
    return this.#state
  }

  show(group: NodeGroup): void {
    this.wasSeen = true
    this.#state = stateOf(group)
  }

  hear({ kind, object }: Change<NodeGroup>): void {
    if (object.metadata.uid !== this.#uid) return
    this.show(object)
    if (kind === 'deleted') this.#state = { kind: 'vanished' }
    this.#isNews = true
    this.#wake?.()
  }

  /** Resolves with whether the cache showed a change within `ms`. */
  async changed(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
    if (!this.#isNews) {
      const waiting = new AbortController()
      this.#wake = () => {
        waiting.abort()
      }
      const ended = signal === undefined ? waiting.signal : AbortSignal.any([waiting.signal, signal])
      await this.#clock.sleep(ms, ended).catch((error: unknown) => {
        if (!ended.aborted) throw error
      })
      this.#wake = undefined
      signal?.throwIfAborted()
    }
    const isNews = this.#isNews
    this.#isNews = false
    return isNews
  }
}

function decisive(state: WatchedGroup['state']): Decision | undefined {
  if (state.kind === 'pending') return undefined
  return state.kind === 'terminating' ? { kind: 'vanished' } : state
}
