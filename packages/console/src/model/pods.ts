/** The pods of a cluster: their requests per node, and the pending ones. */
import {
  accumulate,
  controllerOf,
  type KubeObject,
  type Owner,
  ownerOf,
  type Pod,
  podRequests,
  type Resources,
} from '@tenon/api'
import type { ObjectRef } from './object-ref.ts'
import type { PodCounts } from './view.ts'

/** What is kept of a pod that has not terminated. */
export interface PodFacts {
  readonly namespace: string
  readonly name: string
  readonly owner: Owner
  /** The ReplicaSet between the pod and its owner, a Deployment. */
  readonly replicaSet?: string
  /** In canonical units; pods with equal requests share the object. */
  readonly requests: Resources
  /** Empty without a node. */
  readonly node: string
  readonly isRunning: boolean
  /** The whole object; only for pods that wait for a node. */
  readonly waiting?: Pod
}

/** Totals of the pods on one node. */
export interface NodeLoad {
  readonly pods: number
  readonly requests: Resources
}

/** Bounds memory: beyond this, equal requests are not shared. */
const mostShared = 10_000

export class PodIndex {
  readonly #pods = new Map<string, PodFacts>()
  readonly #onNode = new Map<string, Set<PodFacts>>()
  /** By {@link workloadKey} of the owner. */
  readonly #ofWorkload = new Map<string, Set<PodFacts>>()
  readonly #shared = new Map<string, Resources>()
  #running = 0
  #bound = 0

  /** @returns names of nodes whose load has changed, and the key of the pod. */
  set(pod: Pod): { readonly nodes: readonly string[]; readonly key: string } {
    const key = podKey(pod)
    const held = this.#pods.get(key)
    const facts = this.#factsOf(pod)
    if (held !== undefined && facts !== undefined && isSame(held, facts)) return { nodes: [], key }
    const nodes = [...this.#drop(key, held), ...this.#add(key, facts)]
    return { nodes, key }
  }

  /** @returns names of nodes whose load has changed. */
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

  /** The pods of a workload; those of a Deployment's ReplicaSet are kept with the Deployment. */
  of(workload: ObjectRef): readonly PodFacts[] {
    const own = [...(this.#ofWorkload.get(workloadKey(workload)) ?? [])]
    if (workload.kind !== 'ReplicaSet') return own
    const deployment = { ...workload, kind: 'Deployment', name: workload.name.replace(/-[^-]*$/, '') }
    const ofDeployment = [...(this.#ofWorkload.get(workloadKey(deployment)) ?? [])]
    return [...own, ...ofDeployment.filter(({ replicaSet }) => replicaSet === workload.name)]
  }

  /** {@link workloadKey} of all owners of pods. */
  workloads(): Iterable<string> {
    return this.#ofWorkload.keys()
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

  /** Undefined for a terminated pod: it uses nothing and is not counted (console.md, trap 4). */
  #factsOf(pod: Pod): PodFacts | undefined {
    const { phase } = pod.status ?? {}
    if (phase === 'Succeeded' || phase === 'Failed') return undefined
    const { name, namespace = 'default' } = pod.metadata
    const { nodeName: node = '' } = pod.spec
    const owner = ownerOf(pod)
    const controller = controllerOf(pod)
    return {
      namespace,
      name,
      owner,
      ...(owner.kind === 'Deployment' &&
        controller?.kind === 'ReplicaSet' && { replicaSet: controller.name }),
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
    deleteFrom(this.#ofWorkload, ownerKey(held), held)
    if (held.node === '') return []
    this.#bound--
    deleteFrom(this.#onNode, held.node, held)
    return [held.node]
  }

  #add(key: string, facts: PodFacts | undefined): readonly string[] {
    if (facts === undefined) return []
    this.#pods.set(key, facts)
    if (facts.isRunning) this.#running++
    addTo(this.#ofWorkload, ownerKey(facts), facts)
    if (facts.node === '') return []
    this.#bound++
    addTo(this.#onNode, facts.node, facts)
    return [facts.node]
  }
}

function addTo(sets: Map<string, Set<PodFacts>>, key: string, facts: PodFacts): void {
  const set = sets.get(key)
  if (set === undefined) sets.set(key, new Set([facts]))
  else set.add(facts)
}

function deleteFrom(sets: Map<string, Set<PodFacts>>, key: string, facts: PodFacts): void {
  const set = sets.get(key)
  set?.delete(facts)
  if (set?.size === 0) sets.delete(key)
}

/** Neither kind nor namespace contains a slash. */
function workloadKey({ kind, namespace = 'default', name }: ObjectRef): string {
  return `${kind}/${namespace}/${name}`
}

function ownerKey({ namespace, owner }: PodFacts): string {
  return workloadKey({ ...owner, namespace })
}

/** The API server rejects invalid requests, but a snapshot file may contain them. */
function requestsOf({ spec, status }: Pod): Resources {
  try {
    return podRequests(spec, status)
  } catch (error) {
    if (error instanceof RangeError) return {}
    throw error
  }
}

/** Only for pods with a node: a pending one counts as changed with every event. */
function isSame(held: PodFacts, facts: PodFacts): boolean {
  return (
    held.node === facts.node &&
    held.node !== '' &&
    held.isRunning === facts.isRunning &&
    held.requests === facts.requests &&
    held.owner.name === facts.owner.name &&
    held.owner.kind === facts.owner.kind &&
    held.replicaSet === facts.replicaSet
  )
}

export function podKey({ metadata }: Pick<KubeObject, 'metadata'>): string {
  return `${metadata.namespace ?? 'default'}/${metadata.name}`
}
