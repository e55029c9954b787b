/** The pods of a cluster: what they ask for on each node, and which of them have none. */
import { accumulate, type KubeObject, type Pod, podRequests, type Resources } from '@tenon/api'
import { type Owner, ownerOf } from '@tenon/ask/cost'
import type { PodCounts } from './view.ts'

/** What is kept of a pod that has not ended. */
export interface PodFacts {
  readonly namespace: string
  readonly name: string
  readonly owner: Owner
  /** In canonical units; shared by pods that ask for the same. */
  readonly requests: Resources
  /** Empty without one. */
  readonly node: string
  readonly isRunning: boolean
  /** The whole object, of pods that wait for a node. */
  readonly waiting?: Pod
}

/** What pods on one node add up to. */
export interface NodeLoad {
  readonly pods: number
  readonly requests: Resources
}

/** More different requests than that are not shared. */
const mostShared = 10_000

export class PodIndex {
  readonly #pods = new Map<string, PodFacts>()
  readonly #onNode = new Map<string, Set<PodFacts>>()
  readonly #shared = new Map<string, Resources>()
  #running = 0
  #bound = 0

  /** @returns names of the nodes whose load has changed, and the key of the pod. */
  set(pod: Pod): { readonly nodes: readonly string[]; readonly key: string } {
    const key = podKey(pod)
    const held = this.#pods.get(key)
    const facts = this.#factsOf(pod)
    if (held !== undefined && facts !== undefined && isSame(held, facts)) return { nodes: [], key }
    const nodes = [...this.#drop(key, held), ...this.#add(key, facts)]
    return { nodes, key }
  }

  /** @returns names of the nodes whose load has changed. */
  remove(key: string): readonly string[] {
    return this.#drop(key, this.#pods.get(key))
  }

  keys(): Iterable<string> {
    return this.#pods.keys()
  }

  get(key: string): PodFacts | undefined {
    return this.#pods.get(key)
  }

  counts(): PodCounts {
    const total = this.#pods.size
    return { total, pending: total - this.#bound, running: this.#running, bound: this.#bound }
  }

  on(node: string): Iterable<PodFacts> {
    return this.#onNode.get(node) ?? []
  }

  loadOf(node: string): NodeLoad {
    const requests: Record<string, number> = {}
    let pods = 0
    for (const facts of this.on(node)) {
      accumulate(requests, facts.requests)
      pods++
    }
    return { pods, requests }
  }

  /** A pod that has ended takes nothing any more, and is no pod of any count (console.md, trap 4). */
  #factsOf(pod: Pod): PodFacts | undefined {
    const { phase } = pod.status ?? {}
    if (phase === 'Succeeded' || phase === 'Failed') return undefined
    const { name, namespace = 'default' } = pod.metadata
    const { nodeName: node = '' } = pod.spec
    return {
      namespace,
      name,
      owner: ownerOf(pod),
      requests: this.#sharedRequests(pod),
      node,
      isRunning: phase === 'Running',
      ...(node === '' && { waiting: pod }),
    }
  }

  #sharedRequests(pod: Pod): Resources {
    const requests = requestsOf(pod)
    const text = JSON.stringify(requests)
    const shared = this.#shared.get(text)
    if (shared !== undefined) return shared
    if (this.#shared.size < mostShared) this.#shared.set(text, requests)
    return requests
  }

  #drop(key: string, held: PodFacts | undefined): readonly string[] {
    if (held === undefined) return []
    this.#pods.delete(key)
    if (held.isRunning) this.#running--
    if (held.node === '') return []
    this.#bound--
    const on = this.#onNode.get(held.node)
    on?.delete(held)
    if (on?.size === 0) this.#onNode.delete(held.node)
    return [held.node]
  }

  #add(key: string, facts: PodFacts | undefined): readonly string[] {
    if (facts === undefined) return []
    this.#pods.set(key, facts)
    if (facts.isRunning) this.#running++
    if (facts.node === '') return []
    this.#bound++
    const on = this.#onNode.get(facts.node)
    if (on === undefined) this.#onNode.set(facts.node, new Set([facts]))
    else on.add(facts)
    return [facts.node]
  }
}

/** No API server takes a pod whose requests cannot be read; a file may hold one all the same. */
function requestsOf({ spec, status }: Pod): Resources {
  try {
    return podRequests(spec, status)
  } catch (error) {
    if (error instanceof RangeError) return {}
    throw error
  }
}

/** Of pods with a node; one that waits is told anew whatever has changed of it. */
function isSame(held: PodFacts, facts: PodFacts): boolean {
  return (
    held.node === facts.node &&
    held.node !== '' &&
    held.isRunning === facts.isRunning &&
    held.requests === facts.requests &&
    held.owner.name === facts.owner.name &&
    held.owner.kind === facts.owner.kind
  )
}

export function podKey({ metadata }: Pick<KubeObject, 'metadata'>): string {
  return `${metadata.namespace ?? 'default'}/${metadata.name}`
}
