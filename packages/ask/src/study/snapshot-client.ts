/** The API server of a snapshot: read-only, and nothing changes. */
import { apiVersionOf, type KubeObject, matchesSelector, type ResourceType } from '@tenon/api'
import {
  KubeError,
  type ListOptions,
  type ObjectKey,
  type ServedKind,
  type WatchingKubeClient,
  type WriteOptions,
} from '@tenon/kube'

/** The resource version of every list; objects keep their own. */
const resourceVersion = '1'

export class SnapshotClient implements WatchingKubeClient {
  /** By API version and kind. */
  readonly #objects: ReadonlyMap<string, readonly KubeObject[]>
  readonly #gitVersion: string
  readonly #isServed: (type: ResourceType) => boolean

  /**
   * @param gitVersion version that the server reports, such as `v1.36.3`.
   * @param isServed whether a kind can be listed.
   */
  constructor(
    objects: readonly KubeObject[],
    gitVersion: string,
    isServed: (type: ResourceType) => boolean = () => true,
  ) {
    this.#isServed = isServed
    this.#objects = Map.groupBy(objects, ({ apiVersion, kind }) => `${apiVersion}/${kind}`)
    this.#gitVersion = gitVersion
  }

  get<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey): Promise<T | undefined> {
    const found = this.#of(type).find(
      ({ metadata }) => metadata.name === key.name && (metadata.namespace ?? '') === (key.namespace ?? ''),
    )
    return Promise.resolve(found)
  }

  list<T extends KubeObject>(type: ResourceType<T>, options: ListOptions = {}): Promise<T[]> {
    const { namespace, labelSelector } = options
    if (!this.#isServed(type))
      return Promise.reject(new KubeError('notFound', 404, `the snapshot holds no ${type.plural}`))
    return Promise.resolve(
      this.#of(type).filter(
        ({ metadata }) =>
          (namespace === undefined || metadata.namespace === namespace) &&
          (labelSelector === undefined || matchesSelector(labelSelector, metadata.labels ?? {})),
      ),
    )
  }

  servedVersions(group: string): Promise<readonly string[]> {
    const versions = [...this.#objects.values()].flatMap(([object]) => {
      const [own, version] = object?.apiVersion.split('/', 2) ?? []
      return own === group && version !== undefined ? [version] : []
    })
    return Promise.resolve([...new Set(versions)])
  }

  /** The snapshot does not hold plurals. */
  servedKinds(): Promise<readonly ServedKind[]> {
    return Promise.resolve([])
  }

  async listing<T extends KubeObject, K>(
    type: ResourceType<T>,
    options: ListOptions & WriteOptions,
    keep: (object: T) => K,
  ): Promise<{ readonly items: K[]; readonly resourceVersion: string }> {
    return { items: (await this.list(type, options)).map(keep), resourceVersion }
  }

  watch(_type: ResourceType, { signal }: WriteOptions): Promise<AsyncIterable<never>> {
    return Promise.resolve(unchanging(signal))
  }

  create(): Promise<never> {
    return refused()
  }

  update(): Promise<never> {
    return refused()
  }

  patch(): Promise<never> {
    return refused()
  }

  delete(): Promise<never> {
    return refused()
  }

  evict(): Promise<never> {
    return refused()
  }

  serverVersion(): Promise<string> {
    return Promise.resolve(this.#gitVersion)
  }

  /** Narrows the type: objects of a kind have its type. */
  #of<T extends KubeObject>(type: ResourceType<T>): readonly T[] {
    return (this.#objects.get(`${apiVersionOf(type)}/${type.kind}`) ?? []) as readonly T[]
  }
}

/** A watch without events; ends when its signal aborts. */
export function unchanging(signal: AbortSignal | undefined): AsyncIterable<never> {
  const ended = new Promise<void>((resolve) => {
    if (signal === undefined || signal.aborted) resolve()
    else
      signal.addEventListener('abort', () => {
        resolve()
      })
  })
  const nothing = { done: true as const, value: undefined }
  return { [Symbol.asyncIterator]: () => ({ next: () => ended.then(() => nothing) }) }
}

function refused(): Promise<never> {
  return Promise.reject(new KubeError('forbidden', 403, 'a snapshot cannot be written to'))
}
