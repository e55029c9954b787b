/** All instances by name, rebuilt only where an object has changed (cluster-state.md 1). */
import type { NodeClaim } from '@tenon/api'
import { type Caches, indexes } from '../caches.ts'
import { keyOfNode } from './consolidation-state.ts'
import { isTracked, joined, ownNode, type StateNode } from './state-node.ts'

export interface StateNodeFacts {
  readonly isManaged: (claim: NodeClaim) => boolean
  /** Whether an instance is marked for deletion before its objects show it. */
  readonly isMarked: (providerID: string) => boolean
}

export class StateNodes {
  readonly #caches: Pick<Caches, 'nodes' | 'nodeClaims'>
  readonly #facts: StateNodeFacts
  #all: readonly StateNode[] | undefined
  /** Index in {@link #all} by key. */
  #indexByKey = new Map<string, number>()
  /** Whether several instances have the same key. */
  #hasTwins = false
  /** Keys of instances that may have changed. */
  readonly #changed = new Set<string>()

  constructor(caches: Pick<Caches, 'nodes' | 'nodeClaims'>, facts: StateNodeFacts) {
    this.#caches = caches
    this.#facts = facts
    caches.nodes.onChange((change) => {
      this.see(keyOfNode(change.object))
      if (change.kind === 'updated') this.see(keyOfNode(change.old))
    })
    caches.nodeClaims.onChange((change) => {
      this.see(keyOfClaim(change.object))
      if (change.kind === 'updated') this.see(keyOfClaim(change.old))
    })
  }

  see(key: string): void {
    if (this.#all !== undefined) this.#changed.add(key)
  }

  /** By name; the same array until something changes. */
  all(): readonly StateNode[] {
    if (this.#all === undefined) return this.#readAll()
    if (this.#changed.size === 0) return this.#all
    if (this.#hasTwins) return this.#readAll()
    const updated: (StateNode | undefined)[] = [...this.#all]
    const added: StateNode[] = []
    let isReordered = false
    for (const key of this.#changed) {
      const index = this.#indexByKey.get(key)
      const [now, ...more] = this.#of(key)
      if (more.length > 0) return this.#readAll()
      if (index !== undefined && now?.name === updated[index]?.name) updated[index] = now
      else if (index !== undefined || now !== undefined) {
        isReordered = true
        if (index !== undefined) updated[index] = undefined
        if (now !== undefined) added.push(now)
      }
    }
    const left = updated.filter((stateNode) => stateNode !== undefined)
    if (isReordered) return this.#store([...left, ...added])
    this.#all = left
    this.#changed.clear()
    return left
  }

  #readAll(): readonly StateNode[] {
    const { nodes, nodeClaims } = this.#caches
    const keys = new Set([...nodeClaims.list().map(keyOfClaim), ...nodes.list().map(keyOfNode)])
    return this.#store([...keys].flatMap((key) => this.#of(key)))
  }

  #store(stateNodes: readonly StateNode[]): readonly StateNode[] {
    const all = stateNodes.toSorted(byName)
    this.#all = all
    this.#indexByKey = new Map(all.map(({ providerID }, index) => [providerID, index]))
    this.#hasTwins = this.#indexByKey.size < all.length
    this.#changed.clear()
    return all
  }

  /** The instances with this key; several if objects contradict each other. */
  #of(key: string): readonly StateNode[] {
    if (key === '') return []
    const { nodes, nodeClaims } = this.#caches
    const { isManaged, isMarked } = this.#facts
    const withId = nodes.byIndex(indexes.byProviderId, key)
    const claims = nodeClaims.byIndex(indexes.byProviderId, key).filter(isManaged)
    const own = ownNode(withId, claims[0])
    const only = own !== undefined && isTracked(own) ? own : undefined
    const claimed = claims.map((claim) => joined(only, claim, key, isMarked(key)))
    const named = nodes.get({ name: key })
    const others = [
      ...(claimed.length > 0 && only !== undefined ? [] : withId),
      ...(named !== undefined && (named.spec?.providerID ?? '') === '' ? [named] : []),
    ]
    return [
      ...claimed,
      ...others.filter(isTracked).map((node) => joined(node, undefined, key, isMarked(key))),
    ]
  }
}

/** By name, then by provider ID. */
function byName(a: StateNode, b: StateNode): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1
  return a.providerID < b.providerID ? -1 : a.providerID > b.providerID ? 1 : 0
}

/** Empty until the claim is launched. */
function keyOfClaim({ status }: NodeClaim): string {
  return status?.providerID ?? ''
}
