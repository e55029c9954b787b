/**
 * Moves pods in the order of the plan. kube-scheduler spreads pods over nodes: if small pods came first, no node would have
 * room for a large one, and one would be launched for it.
 */
import type { Clock } from '@tenon/runtime'
import { controllerOf, type Pod } from '@tenon/api'
import { type Caches, indexes } from '../../state/caches.ts'
import { isActive, isTerminal, isTerminating } from '../../state/pods/pods.ts'
import type { EvictionQueue } from '../../node/termination/eviction-queue.ts'
import { drainTier, isDrainable } from '../../node/termination/drain.ts'

interface Dependencies {
  readonly caches: { readonly pods: Pick<Caches['pods'], 'get' | 'byIndex'> }
  readonly clock: Pick<Clock, 'monotonic' | 'now'>
  /** Evicts pods within their PDBs. */
  readonly evictions: Pick<EvictionQueue, 'add'>
}

/** Longest wait for the successors of a wave's pods. */
const longestWaveMs = 5000

/** The pods of one command, wave by wave; a wave begins once the pods before it are bound elsewhere. */
export class Waves {
  readonly #deps: Dependencies
  readonly #waves: readonly (readonly Pod[])[]
  #next = 0
  #sinceMs = 0
  #under: readonly Pod[] = []
  /** Number of bound pods by UID of their owner, before the current wave. */
  readonly #placed = new Map<string, number>()
  /** Pods that were evicted, by the name of their node. */
  readonly #asked = new Map<string, Pod[]>()

  constructor(deps: Dependencies, waves: readonly (readonly Pod[])[]) {
    this.#deps = deps
    this.#waves = waves
  }

  /** Begins the next wave if it is time. @returns whether all pods have moved, or are left to the drain. */
  advance(): boolean {
    const now = this.#deps.clock.monotonic()
    while (now - this.#sinceMs >= longestWaveMs || this.#isSettled()) {
      const wave = this.#waves[this.#next++]
      if (wave === undefined) return true
      this.#under = wave.filter((pod) => this.#isToMove(pod))
      if (this.#under.length === 0) continue
      this.#sinceMs = now
      this.#placed.clear()
      for (const owner of ownersOf(this.#under)) this.#placed.set(owner, this.#placedOf(owner))
      for (const pod of this.#under) {
        const node = pod.spec.nodeName ?? ''
        this.#asked.set(node, [...(this.#asked.get(node) ?? []), pod])
      }
      this.#deps.evictions.add(this.#under, Number.POSITIVE_INFINITY)
      return false
    }
    return false
  }

  /** How many of the evicted pods of a node are gone. */
  movedFrom(node: string): number {
    return (this.#asked.get(node) ?? []).filter((pod) => !this.#isThere(pod)).length
  }

  /** Whether every pod of the wave is terminating and has a bound successor. */
  #isSettled(): boolean {
    return (
      this.#under.every((pod) => !this.#isThere(pod)) &&
      [...this.#placed].every(([owner, count]) => this.#placedOf(owner) >= count)
    )
  }

  #placedOf(owner: string): number {
    return this.#deps.caches.pods
      .byIndex(indexes.byOwner, owner)
      .filter((pod) => isActive(pod) && (pod.spec.nodeName ?? '') !== '').length
  }

  #isThere({ metadata: { name, namespace = '', uid } }: Pod): boolean {
    const current = this.#deps.caches.pods.get({ namespace, name })
    return current?.metadata.uid === uid && current !== undefined && isActive(current)
  }

  /** Whether a drain would evict the pod in its first tier; the drain evicts all others. */
  #isToMove(pod: Pod): boolean {
    return (
      !isTerminal(pod) &&
      !isTerminating(pod) &&
      this.#isThere(pod) &&
      drainTier(pod) === 'pods' &&
      isDrainable(pod, this.#deps.clock.now())
    )
  }
}

function ownersOf(pods: readonly Pod[]): ReadonlySet<string> {
  return new Set(pods.flatMap((pod) => controllerOf(pod)?.uid ?? []))
}
