import { apiVersionOf, type KubeObject, matchesSelector, type ResourceType } from '@tenon/api'
import type {
  LocalApi,
  LocalDeleteOptions,
  LocalHandler,
  LocalListOptions,
  LocalScale,
  ResourceDefinition,
  StoredObject,
} from '../contract.ts'
import { namespacePrefix } from '../storage/index.ts'
import { bindPod } from './verbs/binding.ts'
import type { ServerContext, WriteOptions } from './context.ts'
import { createObject } from './verbs/create.ts'
import { deleteObject } from './verbs/delete.ts'
import { evictPod } from './verbs/eviction.ts'
import { patchObject } from './verbs/patch.ts'
import type { Served } from './kinds/registry.ts'
import { readScale, patchScale } from './verbs/scale.ts'
import { parseLabelSelector } from './selectors.ts'
import { noSuchPath } from './http/status.ts'
import { Subscriptions } from './subscriptions.ts'
import { updateObject } from './verbs/update.ts'
import { readObject } from './verbs/writing.ts'

/** The API for parts of this process. */
export class InProcessApi implements LocalApi {
  readonly #ctx: ServerContext
  readonly #subscriptions: Subscriptions
  readonly #options: WriteOptions
  /** Resolved types, valid until the registry changes. */
  #known = new WeakMap<ResourceType, Served>()
  #generation = -1

  /** @param manager field manager of the writes. */
  constructor(ctx: ServerContext, manager: string) {
    this.#ctx = ctx
    this.#subscriptions = new Subscriptions(ctx)
    this.#options = {
      manager,
      fieldValidation: 'Ignore',
      dryRun: false,
      warnings: [],
      internal: true,
      user: { name: `system:${manager}`, groups: ['system:masters', 'system:authenticated'] },
    }
  }

  get<T extends KubeObject>(
    type: ResourceType<T>,
    namespace: string | undefined,
    name: string,
  ): T | undefined {
    return readObject(this.#ctx, this.#served(type), { namespace, name }) as unknown as T | undefined
  }

  list<T extends KubeObject>(type: ResourceType<T>, options: LocalListOptions = {}): T[] {
    const served = this.#served(type)
    const { labelSelector } = options
    const found: StoredObject[] = []
    const scope = options.namespace === undefined ? {} : { prefix: namespacePrefix(options.namespace) }
    this.#ctx.store.collection(served.collection).scan(scope, (object) => {
      if (labelSelector === undefined || matchesSelector(labelSelector, object.metadata.labels))
        found.push(served.view(object))
      return true
    })
    return found as unknown as T[]
  }

  create<T extends KubeObject>(type: ResourceType<T>, object: T): T {
    const served = this.#served(type)
    return createObject(this.#ctx, served, undefined, typed(type, object), this.#options) as unknown as T
  }

  update<T extends KubeObject>(type: ResourceType<T>, object: T): T {
    return this.#update(type, object)
  }

  updateStatus<T extends KubeObject>(type: ResourceType<T>, object: T): T {
    return this.#update(type, object, 'status')
  }

  patch<T extends KubeObject>(
    type: ResourceType<T>,
    namespace: string | undefined,
    name: string,
    patch: object,
    subresource?: 'status' | 'finalize' | 'resize',
  ): T {
    const request = { kind: 'merge', body: patch, force: false } as const
    const served = this.#served(type)
    const key = { namespace, name }
    return patchObject(this.#ctx, { served, key, subresource }, request, this.#options) as unknown as T
  }

  delete(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    options: LocalDeleteOptions = {},
  ): void {
    deleteObject(this.#ctx, this.#served(type), { namespace, name }, options, this.#options)
  }

  scale(type: ResourceType, namespace: string | undefined, name: string): LocalScale | undefined {
    const served = this.#served(type)
    const key = { namespace, name }
    if (readObject(this.#ctx, served, key) === undefined) return undefined
    const scale = readScale(this.#ctx, served, key) as StoredObject & {
      readonly spec: { readonly replicas: number }
      readonly status: { readonly selector?: string }
    }
    const { selector = '' } = scale.status
    const selects = selector === '' ? () => false : parseLabelSelector(selector)
    return { replicas: scale.spec.replicas, selects }
  }

  setScale(type: ResourceType, namespace: string | undefined, name: string, replicas: number): void {
    const served = this.#served(type)
    const request = { kind: 'merge', body: { spec: { replicas } }, force: false } as const
    patchScale(this.#ctx, served, { namespace, name }, request, this.#options)
  }

  bind(namespace: string, podName: string, nodeName: string): void {
    bindPod(this.#ctx, this.#pods(), { namespace, podName, nodeName }, this.#options)
  }

  evict(namespace: string, podName: string): void {
    evictPod(this.#ctx, this.#pods(), { namespace, name: podName }, {}, this.#options)
  }

  subscribe<T extends KubeObject>(type: ResourceType<T>, handler: LocalHandler<T>): () => void {
    return this.#subscriptions.subscribe(this.#served(type), handler as LocalHandler<KubeObject>)
  }

  definitions(): readonly ResourceDefinition[] {
    return this.#ctx.registry.definitions()
  }

  #update<T extends KubeObject>(type: ResourceType<T>, object: T, subresource?: 'status'): T {
    const { namespace, name } = object.metadata
    const served = this.#served(type)
    const key = { namespace, name }
    return updateObject(
      this.#ctx,
      { served, key, subresource },
      typed(type, object),
      this.#options,
    ) as unknown as T
  }

  #pods(): Served {
    return this.#served({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true })
  }

  #served(type: ResourceType): Served {
    const { registry } = this.#ctx
    if (this.#generation !== registry.generation) {
      this.#generation = registry.generation
      this.#known = new WeakMap()
    }
    const known = this.#known.get(type)
    if (known !== undefined) return known
    const served = registry.find(type.group, type.version, type.plural)
    if (served === undefined) throw noSuchPath()
    this.#known.set(type, served)
    return served
  }
}

/** The object with the type of the call, which it may omit. */
function typed(type: ResourceType, object: KubeObject): StoredObject {
  const full = object as StoredObject
  if (full.apiVersion !== undefined && full.kind !== undefined) return full
  return { ...full, apiVersion: apiVersionOf(type), kind: type.kind }
}
