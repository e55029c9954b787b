/** Finds objects of all kinds by a part of their name (page.md 2). */
import type { NodeClaim, NodePool } from '@tenon/api'
import type { Fleet } from './fleet.ts'
import type { ObjectRef } from './object-ref.ts'
import type { PodIndex } from './pods.ts'

interface Searched {
  readonly objects: Pick<Fleet, 'claimNames' | 'claims' | 'nodeNames'>
  readonly pools: ReadonlyMap<string, NodePool>
  readonly pods: Pick<PodIndex, 'keys' | 'workloads'>
}

export interface Found {
  /** The closest first. */
  readonly objects: readonly ObjectRef[]
  /** How many there are. */
  readonly total: number
}

const mostFound = 50

/**
 * Objects whose name, with its namespace, contains every word of the text, in any case: names that are the text
 * first, then those that begin with it. One pass over all names and no copy of them, so that a hundred thousand
 * pods take some ten milliseconds.
 */
export function search({ objects, pools, pods }: Searched, text: string): Found {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return { objects: [], total: 0 }
  const hits = new Hits(words)
  const named = (kind: string) => (name: string) => ({ kind, name })
  hits.look('NodePool', pools.keys(), named('NodePool'))
  const classes = nodeClasses(pools.values(), objects.claims())
  for (const ref of classes) hits.look('class', [ref.name], () => ref)
  hits.look('Node', objects.nodeNames(), named('Node'))
  hits.look('NodeClaim', objects.claimNames(), named('NodeClaim'))
  hits.look('workload', workloadsOf(pods), (key) => {
    const at = key.indexOf('/')
    return namespaced(key.slice(0, at), key.slice(at + 1))
  })
  hits.look('Pod', pods.keys(), (key) => namespaced('Pod', key))
  return hits.found()
}

/** `KIND/NAMESPACE/NAME`; a pod without a controller is its own owner. */
function workloadsOf(pods: Searched['pods']): Iterable<string> {
  return Iterator.from(pods.workloads()).filter((key) => !key.startsWith('Pod/'))
}

function namespaced(kind: string, key: string): ObjectRef {
  const at = key.indexOf('/')
  return { kind, namespace: key.slice(0, at), name: key.slice(at + 1) }
}

/** The node classes that NodePools and NodeClaims name. */
function nodeClasses(pools: Iterable<NodePool>, claims: Iterable<NodeClaim>): Iterable<ObjectRef> {
  const refs = new Map<string, ObjectRef>()
  const note = ({ group, kind, name }: NodeClaim['spec']['nodeClassRef']) => {
    const key = `${group}/${kind}/${name}`
    if (!refs.has(key)) refs.set(key, { kind, group, name })
  }
  for (const { spec } of pools) note(spec.template.spec.nodeClassRef)
  for (const { spec } of claims) note(spec.nodeClassRef)
  return refs.values()
}

/** How many of a sort are listed before the next sort has its turn. */
const turn = 8

class Hits {
  readonly #words: readonly string[]
  /** By closeness (the name, its beginning, a part of it, or a part of its namespace) and sort of object. */
  readonly #held = new Map<string, ObjectRef[]>()
  #total = 0

  constructor(words: readonly string[]) {
    this.#words = words
  }

  /** @param keys names, after their namespaces and a slash if they have one. */
  look(sort: string, keys: Iterable<string>, refOf: (key: string) => ObjectRef): void {
    for (const key of keys) {
      const text = key.toLowerCase()
      if (!this.#isHit(text)) continue
      this.#total++
      const group = `${this.#rankOf(text)} ${sort}`
      const held = this.#held.get(group)
      if (held === undefined) this.#held.set(group, [refOf(key)])
      else if (held.length < mostFound) held.push(refOf(key))
    }
  }

  #isHit(text: string): boolean {
    for (const word of this.#words) if (!text.includes(word)) return false
    return true
  }

  /** The closest of each sort come first, so that thousands of one sort hide no other. */
  found(): Found {
    const objects = [...this.#held]
      .flatMap(([group, refs]) =>
        refs.map((ref, at) => ({ ref, order: 100 * Number(group[0]) + Math.floor(at / turn) })),
      )
      .toSorted((a, b) => a.order - b.order)
      .slice(0, mostFound)
      .map(({ ref }) => ref)
    return { objects, total: this.#total }
  }

  #rankOf(text: string): number {
    const [first = ''] = this.#words
    const name = text.slice(text.lastIndexOf('/') + 1)
    if (name === first || text.endsWith(`/${first}`)) return 0
    if (name.startsWith(first)) return 1
    return name.includes(first) ? 2 : 3
  }
}
