/** As much of an API server as simulated instances need: objects in a map, each write seen at once. */
import { type KubeObject, type NewObject, pathOf, type ResourceType } from '@tenon/api'
import { type KubeClient, KubeError, type ObjectKey } from '@tenon/kube'
import { type Clock, rfc3339 } from '@tenon/runtime'

export class FakeKube implements KubeClient {
  /** What the next creations end with, after their effect or in place of it. */
  readonly faults: { readonly error: KubeError; readonly hasEffect: boolean }[] = []
  readonly #objects = new Map<string, { readonly type: ResourceType; readonly object: KubeObject }>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  put<T extends KubeObject>(type: ResourceType<T>, object: NewObject<T>): T {
    const name = object.metadata.name ?? ''
    const creationTimestamp = rfc3339(this.#clock.now())
    const stored = {
      ...object,
      metadata: { creationTimestamp, uid: `uid-${name}`, ...object.metadata },
    } as NewObject<T> & T
    this.#objects.set(pathOf(type, undefined, name), { type, object: stored })
    return stored
  }

  async get<T extends KubeObject>(type: ResourceType<T>, { name }: ObjectKey): Promise<T | undefined> {
    await Promise.resolve()
    return this.#objects.get(pathOf(type, undefined, name))?.object as T | undefined
  }

  async list<T extends KubeObject>(type: ResourceType<T>): Promise<T[]> {
    return await Promise.resolve(this.all(type))
  }

  all<T extends KubeObject>(type: ResourceType<T>): T[] {
    const entries = [...this.#objects.values()].filter((entry) => entry.type.plural === type.plural)
    return entries.map(({ object }) => object as T)
  }

  async create<T extends KubeObject>(type: ResourceType<T>, object: NewObject<T>): Promise<T> {
    const fault = this.faults.shift()
    if (fault !== undefined && !fault.hasEffect) throw fault.error
    if ((await this.get(type, { name: object.metadata.name ?? '' })) !== undefined)
      throw new KubeError('alreadyExists', 409, `${object.metadata.name} exists`)
    const stored = this.put(type, object)
    if (fault !== undefined) throw fault.error
    return stored
  }

  async update(): Promise<never> {
    await Promise.resolve()
    throw new KubeError('other', 400, 'simulated instances are not replaced')
  }

  async patch(): Promise<never> {
    await Promise.resolve()
    throw new KubeError('other', 400, 'simulated instances are not patched')
  }

  async delete(type: ResourceType, { name }: ObjectKey): Promise<void> {
    const object = await this.get(type, { name })
    if (object === undefined) throw new KubeError('notFound', 404, `${name} not found`)
    this.#objects.delete(pathOf(type, undefined, name))
  }

  async evict(): Promise<void> {
    await Promise.resolve()
  }

  async serverVersion(): Promise<string> {
    return await Promise.resolve('v1.34.1')
  }
}
