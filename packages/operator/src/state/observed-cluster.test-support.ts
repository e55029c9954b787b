/** A state over caches that are told what they hold, as a watch would tell them. */
import type { KubeObject, ResourceType } from '@tenon/api'
import type { Cache, Change, ObjectKey } from '@tenon/kube'
import { VirtualClock } from '@tenon/runtime'
import { type Caches, openCaches } from './caches.ts'
import { defaultSettings } from '../settings.ts'
import { ClusterState } from './cluster-state.ts'

export const nodeClassKind: ResourceType = {
  group: 'karpenter.kwok.sh',
  version: 'v1alpha1',
  kind: 'KWOKNodeClass',
  plural: 'kwoknodeclasses',
  namespaced: false,
}

/** A provider of which only the node classes are asked. */
const provider = {
  nodeClasses: [nodeClassKind],
  wellKnownLabels: [],
}

const keyOf = ({ namespace = '', name }: ObjectKey) => `${namespace}/${name}`

/** A cache that is told what it holds. */
export class ToldCache<T extends KubeObject = KubeObject> implements Cache<T> {
  readonly type: ResourceType<T>
  isSynced = true
  readonly isListedAgain = false
  isRefused = false
  readonly #objects = new Map<string, T>()
  readonly #indexes = new Map<string, (object: T) => readonly string[]>()
  /** Keys by `index/value`, so that large clusters can be told, too. */
  readonly #keys = new Map<string, Set<string>>()
  readonly #listeners: ((change: Change<T>) => void)[] = []

  constructor(type: ResourceType<T>) {
    this.type = type
  }

  relist(): void {}

  get size(): number {
    return this.#objects.size
  }

  get(key: ObjectKey): T | undefined {
    return this.#objects.get(keyOf(key))
  }

  list(): T[] {
    return [...this.#objects.values()]
  }

  addIndex(name: string, values: (object: T) => readonly string[]): void {
    this.#indexes.set(name, values)
    for (const object of this.list()) this.#index(object, (keys, key) => keys.add(key))
  }

  byIndex(name: string, value: string): T[] {
    return [...(this.#keys.get(`${name}/${value}`) ?? [])].map((key) => this.#objects.get(key) as T)
  }

  onChange(listener: (change: Change<T>) => void): () => void {
    this.#listeners.push(listener)
    for (const object of this.list()) listener({ kind: 'added', object })
    return () => undefined
  }

  synced(): Promise<void> {
    return Promise.resolve()
  }

  put(object: T): void {
    const held = this.get(object.metadata)
    const isAnother = held !== undefined && held.metadata.uid !== object.metadata.uid
    // As caches do when the end of the first one went unseen.
    if (isAnother) this.remove(held.metadata)
    const old = isAnother ? undefined : held
    if (old !== undefined) this.#index(old, (keys, key) => keys.delete(key))
    this.#objects.set(keyOf(object.metadata), object)
    this.#index(object, (keys, key) => keys.add(key))
    this.#tell(old === undefined ? { kind: 'added', object } : { kind: 'updated', object, old })
  }

  remove(key: ObjectKey): void {
    const object = this.get(key)
    if (object === undefined) throw new Error(`there is no ${this.type.kind} ${keyOf(key)}`)
    this.#index(object, (keys, name) => keys.delete(name))
    this.#objects.delete(keyOf(key))
    this.#tell({ kind: 'deleted', object })
  }

  #index(object: T, change: (keys: Set<string>, key: string) => void): void {
    for (const [name, values] of this.#indexes) {
      for (const value of values(object)) {
        const at = `${name}/${value}`
        const keys = this.#keys.get(at) ?? new Set()
        this.#keys.set(at, keys)
        change(keys, keyOf(object.metadata))
      }
    }
  }

  #tell(change: Change<T>): void {
    for (const listener of this.#listeners) listener(change)
  }
}

/** What a cluster state sees, put there by a test. */
export class ObservedCluster {
  readonly clock = new VirtualClock()
  readonly caches: Caches
  readonly state: ClusterState
  /** By kind, each of the type of its kind. */
  readonly #caches = new Map<string, unknown>()

  constructor() {
    const registry = {
      cache: <T extends KubeObject>(type: ResourceType<T>): Cache<T> => this.#cache(type),
    }
    this.caches = openCaches(registry, provider, defaultSettings)
    this.state = new ClusterState(this.caches, provider, this.clock, {
      ...defaultSettings,
      compatibility: 'karpenter',
    })
  }

  /** A watch tells of this object, new or changed. */
  see(...objects: readonly KubeObject[]): void {
    for (const object of objects) this.#cache({ kind: object.kind } as ResourceType).put(object)
  }

  /** A watch tells that the object is gone. */
  miss(object: KubeObject): void {
    this.#cache({ kind: object.kind } as ResourceType).remove(object.metadata)
  }

  #cache<T extends KubeObject>(type: ResourceType<T>): ToldCache<T> {
    let cache = this.#caches.get(type.kind) as ToldCache<T> | undefined
    if (cache === undefined) {
      cache = new ToldCache(type)
      this.#caches.set(type.kind, cache)
    }
    return cache
  }
}
