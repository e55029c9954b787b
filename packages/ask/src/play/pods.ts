/** Replaces the workload controllers of a play: keeps pods alive, with the lifetimes of a trace. */
import { type Container, kinds, type KubeObject, type Pod } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import type { Clock } from '@tenon/runtime'
import type { Owners } from './owners.ts'
import { replacementOf } from './played-objects.ts'
import type { Tally } from './tally.ts'

interface PlayedPod {
  readonly pod: Pod
  readonly replacement: 'none' | 'renamed' | 'sameName'
  /** How often it was recreated. */
  generation: number
  /** The name of its current incarnation. */
  name: string
  createdMs: number
  /** It shall not be recreated. */
  isOver: boolean
  isReady: boolean
}

/**
 * Pods by an id that survives evictions: a pod that goes before its end is recreated at once, as its controller
 * would do.
 */
export class PlayedPods {
  readonly #api: LocalApi
  readonly #clock: Clock
  readonly #tally: Tally
  readonly #owners: Owners
  readonly #byId = new Map<string, PlayedPod>()
  readonly #idByKey = new Map<string, string>()
  readonly #stop: () => void

  constructor(api: LocalApi, clock: Clock, tally: Tally, owners: Owners) {
    this.#api = api
    this.#owners = owners
    this.#clock = clock
    this.#tally = tally
    this.#stop = api.subscribe<Pod>(kinds.pod, {
      updated: (pod, old) => this.#updated(pod, old),
      deleted: (pod) => this.#gone(pod),
    })
  }

  stop(): void {
    this.#stop()
  }

  /** Pods that should run now. */
  get size(): number {
    return this.#byId.size
  }

  /** Creates a pod. */
  add(id: string, pod: Pod): void {
    const entry = this.#enter(id, pod, pod.metadata.name)
    this.#owners.add(pod)
    this.#create(id, entry)
    this.#tally.podAdded(this.#clock.now())
  }

  /** Takes over a pod of the initial cluster. */
  adopt(pod: Pod, id: string = keyOf(pod)): void {
    const key = keyOf(pod)
    const entry = this.#enter(id, withoutLife(pod), pod.metadata.name)
    entry.isReady = isReady(pod)
    this.#owners.add(entry.pod)
    this.#idByKey.set(key, id)
    this.#tally.podAdded(this.#clock.now())
  }

  /** Ends a pod that has completed or is no longer wanted. */
  end(id: string): void {
    const entry = this.#byId.get(id)
    if (entry === undefined) return
    entry.isOver = true
    this.#forget(id)
    const { namespace } = entry.pod.metadata
    if (this.#api.get(kinds.pod, namespace, entry.name) !== undefined)
      this.#api.delete(kinds.pod, namespace, entry.name)
  }

  #enter(id: string, pod: Pod, name: string): PlayedPod {
    const entry: PlayedPod = {
      pod,
      replacement: replacementOf(pod),
      generation: 0,
      name,
      createdMs: this.#clock.now(),
      isOver: false,
      isReady: false,
    }
    this.#byId.set(id, entry)
    return entry
  }

  #create(id: string, entry: PlayedPod): void {
    const { metadata } = entry.pod
    entry.createdMs = this.#clock.now()
    entry.isReady = false
    this.#idByKey.set(`${metadata.namespace ?? 'default'}/${entry.name}`, id)
    this.#api.create<KubeObject>(kinds.pod, { ...entry.pod, metadata: { ...metadata, name: entry.name } })
  }

  #updated(pod: Pod, old: Pod): void {
    const id = this.#idByKey.get(keyOf(pod))
    const entry = id === undefined ? undefined : this.#byId.get(id)
    if (id === undefined || entry === undefined) return
    if (!entry.isReady && isReady(pod)) {
      entry.isReady = true
      this.#tally.podReady(this.#clock.now() - entry.createdMs)
    }
    const isGoing = pod.metadata.deletionTimestamp !== undefined
    if (isGoing && old.metadata.deletionTimestamp === undefined) this.#evicted(id, entry)
    else if (!isGoing && pod.status?.phase === 'Failed' && old.status?.phase !== 'Failed') {
      this.#tally.podRejected()
      this.#api.delete(kinds.pod, pod.metadata.namespace, pod.metadata.name)
    }
  }

  #evicted(id: string, entry: PlayedPod): void {
    this.#tally.podEvicted()
    if (entry.replacement === 'none') this.#forget(id)
    else if (entry.replacement === 'renamed') this.#replace(id, entry)
  }

  /** A pod that was deleted at once, such as a pending one, had no terminating state. */
  #gone(pod: Pod): void {
    const key = keyOf(pod)
    const id = this.#idByKey.get(key)
    this.#idByKey.delete(key)
    const entry = id === undefined ? undefined : this.#byId.get(id)
    if (id === undefined || entry === undefined || entry.name !== pod.metadata.name) return
    if (pod.metadata.deletionTimestamp === undefined) this.#evicted(id, entry)
    else if (entry.replacement === 'sameName') this.#create(id, entry)
  }

  #replace(id: string, entry: PlayedPod): void {
    this.#idByKey.delete(`${entry.pod.metadata.namespace ?? 'default'}/${entry.name}`)
    entry.generation++
    entry.name = `${entry.pod.metadata.name.slice(0, 240)}-r${entry.generation}`
    this.#create(id, entry)
  }

  #forget(id: string): void {
    const entry = this.#byId.get(id)
    if (entry === undefined) return
    this.#byId.delete(id)
    this.#owners.remove(entry.pod)
    this.#idByKey.delete(`${entry.pod.metadata.namespace ?? 'default'}/${entry.name}`)
    this.#tally.podRemoved(this.#clock.now())
  }
}

function keyOf({ metadata }: Pod): string {
  return `${metadata.namespace ?? 'default'}/${metadata.name}`
}

function isReady({ status }: Pod): boolean {
  return status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') ?? false
}

/** The pod that a controller would create in its place. */
function withoutLife({ apiVersion, kind, metadata, spec }: Pod): Pod {
  const { name, namespace, labels, annotations, ownerReferences } = metadata
  // Admission resolves the priority from its class.
  const { nodeName: _node, priority: _priority, preemptionPolicy: _policy, ...rest } = spec
  const { containers, initContainers, ...others } = rest
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ...(ownerReferences && { ownerReferences }),
    },
    spec: {
      ...others,
      containers: containers.map(withImage),
      ...(initContainers && { initContainers: initContainers.map(withImage) }),
    },
  }
}

/** The API server rejects containers without an image, and snapshots omit images. */
function withImage(container: Container): Container {
  return { image: 'played', ...container }
}
