import { apiVersionOf, type KubeObject, type NewObject, pathOf, type ResourceType } from '@tenon/api'
import {
  type ChangeOptions,
  type DeleteOptions,
  type EvictOptions,
  isKubeError,
  isNotServed,
  type KubeClient,
  KubeError,
  type ListOptions,
  type ObjectKey,
  type PatchOptions,
  type ReadFields,
  type UpdateOptions,
  type WriteOptions,
} from '../contract.ts'
import { perObject } from '@tenon/runtime'
import { deletionCheck, jsonCheck, listCheck, objectCheck, successCheck, versionCheck } from './answers.ts'
import { queryText } from './queries.ts'
import { FieldReader } from './read-fields.ts'
import { Requester, type RequesterOptions } from './requester.ts'
import { openWatch, type WatchEvent, type WatchOptions } from './watch.ts'

export interface KubeClientOptions extends RequesterOptions {
  /** Page size of lists; default 250, which keeps the parsing of a page short. */
  readonly pageLimit?: number
}

/** A complete list and its version. */
export interface Listing<T> {
  readonly items: T[]
  readonly resourceVersion: string
}

/** A kind that the server serves in a version of a group. */
export interface ServedKind {
  readonly kind: string
  readonly plural: string
}

/** A client that can also list with version and watch, for caches. */
export interface WatchingKubeClient extends KubeClient {
  /** Versions of a group, the server's preferred one first; empty if it does not serve the group. */
  servedVersions(group: string, options?: WriteOptions): Promise<readonly string[]>
  /** Kinds of a group in one version; empty if it is not served. */
  servedKinds(group: string, version: string, options?: WriteOptions): Promise<readonly ServedKind[]>
  /**
   * @param keep what to keep of each object as its page arrives. Pages are not kept, so that a large collection is
   * never in memory untrimmed.
   */
  listing<T extends KubeObject, K>(
    type: ResourceType<T>,
    options: ListOptions & WriteOptions,
    keep: (object: T) => K,
  ): Promise<Listing<K>>
  /** Opens a watch. Its batches of events end when the server ends it, and throw when it breaks. */
  watch<T extends KubeObject>(
    type: ResourceType<T>,
    options: WatchOptions,
  ): Promise<AsyncIterable<Iterable<WatchEvent<T>>>>
}

/** A client of one API server. Connections belong to the transport. */
export function createKubeClient(options: KubeClientOptions): WatchingKubeClient {
  return new HttpKubeClient(options)
}

const patchTypes = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
} as const

/** What the subresource `scale` of any kind answers. */
const scaleType: ResourceType = {
  group: 'autoscaling',
  version: 'v1',
  kind: 'Scale',
  plural: 'scales',
  namespaced: true,
}

/** Time limit of a list without pages, as a multiple of the usual timeout. */
const wholeListPatience = 10

interface ListPage<T> {
  readonly items: T[] | null
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string }
}

class HttpKubeClient implements WatchingKubeClient {
  readonly #requester: Requester
  readonly #pageLimit: number

  constructor(options: KubeClientOptions) {
    this.#requester = new Requester(options)
    this.#pageLimit = options.pageLimit ?? 250
  }

  async get<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    { signal, lane }: WriteOptions = {},
  ): Promise<T | undefined> {
    try {
      return await this.#requester.json<T>({
        method: 'GET',
        path: objectPath(type, key),
        signal,
        lane,
        retry: 'read',
        check: objectCheck(type, key),
      })
    } catch (error) {
      if (isKubeError(error, 'notFound')) return undefined
      throw error
    }
  }

  async list<T extends KubeObject>(
    type: ResourceType<T>,
    options: ListOptions & WriteOptions = {},
  ): Promise<T[]> {
    return (await this.listing(type, options, (object) => object)).items
  }

  async listing<T extends KubeObject, K>(
    type: ResourceType<T>,
    options: ListOptions & WriteOptions,
    keep: (object: T) => K,
  ): Promise<Listing<K>> {
    const items: K[] = []
    const { fields } = options
    const reader = fields && new FieldReader({ members: { items: fields }, others: true })
    let next: string | undefined
    const seen = new Set<string>()
    for (;;) {
      let page: ListPage<T>
      try {
        const paging = { limit: String(this.#pageLimit), continue: next }
        page = await this.#page(type, { ...options, reader }, paging)
      } catch (error) {
        if (next === undefined || !isKubeError(error, 'gone')) throw error
        // The version of the pages was compacted; only a list without pages is sure to complete.
        page = await this.#page(type, { ...options, reader }, {}, wholeListPatience)
        items.length = 0
        seen.clear()
      }
      refuseRepetition(type, page, seen)
      for (const item of page.items ?? []) items.push(keep(withType(type, item)))
      next = page.metadata.continue === '' ? undefined : page.metadata.continue
      if (next === undefined) return { items, resourceVersion: page.metadata.resourceVersion }
    }
  }

  watch<T extends KubeObject>(
    type: ResourceType<T>,
    options: WatchOptions,
  ): Promise<AsyncIterable<Iterable<WatchEvent<T>>>> {
    return openWatch(this.#requester, type, options)
  }

  async create<T extends KubeObject>(
    type: ResourceType<T>,
    object: NewObject<T>,
    { signal, lane, isDryRun }: ChangeOptions = {},
  ): Promise<T> {
    const path = `${pathOf(type, namespaceFor(type, object.metadata.namespace))}${dryRunQuery(isDryRun)}`
    const { name, namespace } = object.metadata
    return await this.#requester.json<T>({
      method: 'POST',
      path,
      body: object,
      signal,
      lane,
      retry: 'write',
      check: objectCheck(type, {
        ...(name !== undefined && { name }),
        ...(namespace !== undefined && { namespace }),
      }),
    })
  }

  async update<T extends KubeObject>(
    type: ResourceType<T>,
    object: T,
    { signal, lane, subresource }: UpdateOptions = {},
  ): Promise<T> {
    const { name, namespace, resourceVersion = '' } = object.metadata
    if (resourceVersion === '')
      throw new TypeError(`${type.kind} ${name} was not read from the server: it has no resourceVersion`)
    const key = { name, ...(namespace !== undefined && { namespace }) }
    return await this.#requester.json<T>({
      method: 'PUT',
      path: objectPath(type, key, subresource),
      body: withType(type, object),
      signal,
      lane,
      retry: 'write',
      check: objectCheck(subresource === 'scale' ? scaleType : type, key),
    })
  }

  async patch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: object,
    options: PatchOptions = {},
  ): Promise<T> {
    const { subresource, kind = 'merge', resourceVersion, isAnswerUnread = false, fields } = options
    return await this.#requester.json<T>({
      method: 'PATCH',
      path: `${objectPath(type, key, subresource)}${dryRunQuery(options.isDryRun)}`,
      body: withResourceVersion(kind, patch, resourceVersion),
      contentType: patchTypes[kind],
      isAnswerUnread,
      reader: fields && readerOf(fields),
      signal: options.signal,
      lane: options.lane,
      retry: 'write',
      check: objectCheck(subresource === 'scale' ? scaleType : type, key),
    })
  }

  async delete(type: ResourceType, key: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    const { preconditionUid: uid, preconditionResourceVersion: resourceVersion } = options
    const preconditions = {
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    }
    await this.#requester.json({
      method: 'DELETE',
      path: objectPath(type, key),
      body: {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        ...(Object.keys(preconditions).length > 0 && { preconditions }),
        ...(options.gracePeriodSeconds !== undefined && { gracePeriodSeconds: options.gracePeriodSeconds }),
        ...(options.propagationPolicy !== undefined && { propagationPolicy: options.propagationPolicy }),
      },
      signal: options.signal,
      lane: options.lane,
      retry: 'write',
      check: deletionCheck(type, key),
    })
  }

  async evict(
    pod: ObjectKey,
    uid: string,
    { signal, lane, gracePeriodSeconds }: EvictOptions = {},
  ): Promise<void> {
    const podType = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true }
    await this.#requester.json({
      method: 'POST',
      path: objectPath(podType, pod, 'eviction'),
      body: {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name: pod.name, namespace: pod.namespace },
        deleteOptions: {
          preconditions: { uid },
          ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds }),
        },
      },
      signal,
      lane,
      // 429 means that a PodDisruptionBudget refuses; the caller decides when to retry.
      retry: 'once',
      check: successCheck,
    })
  }

  async serverVersion(): Promise<string> {
    const version = await this.#requester.json<{ gitVersion?: string }>({
      method: 'GET',
      path: '/version',
      retry: 'read',
      check: versionCheck,
    })
    return version.gitVersion ?? ''
  }

  async servedVersions(group: string, options: WriteOptions = {}): Promise<readonly string[]> {
    const found = await this.#discovered<{
      readonly preferredVersion?: { readonly version?: string }
      readonly versions?: readonly { readonly version?: string }[]
    }>(`/apis/${group}`, options)
    const versions = [found?.preferredVersion, ...(found?.versions ?? [])]
    return [...new Set(versions.flatMap((each) => each?.version ?? []))]
  }

  async servedKinds(
    group: string,
    version: string,
    options: WriteOptions = {},
  ): Promise<readonly ServedKind[]> {
    const found = await this.#discovered<{
      readonly resources?: readonly { readonly name?: string; readonly kind?: string }[]
    }>(`/apis/${group}/${version}`, options)
    return (found?.resources ?? []).flatMap(({ name = '', kind = '' }) =>
      name === '' || kind === '' || name.includes('/') ? [] : [{ kind, plural: name }],
    )
  }

  /** A discovery document; undefined for 404, which for a group comes in plain text. */
  async #discovered<T>(path: string, options: WriteOptions): Promise<T | undefined> {
    try {
      return await this.#requester.json<T>({
        method: 'GET',
        path,
        ...options,
        retry: 'read',
        check: jsonCheck,
      })
    } catch (error) {
      if (isNotServed(error)) return undefined
      throw error
    }
  }

  #page<T extends KubeObject>(
    type: ResourceType<T>,
    options: ListOptions & WriteOptions & { readonly reader: FieldReader | undefined },
    paging: Readonly<Record<string, string | undefined>>,
    patience = 1,
  ): Promise<ListPage<T>> {
    const path = `${pathOf(type, options.namespace)}${queryText(options, paging)}`
    const { signal, lane, reader } = options
    return this.#requester.json<ListPage<T>>({
      method: 'GET',
      path,
      signal,
      lane,
      patience,
      reader,
      retry: 'read',
      check: listCheck(type),
    })
  }
}

/**
 * Prevents an endless list from a server that repeats pages.
 * @param seen hashes of earlier pages.
 */
function refuseRepetition<T extends KubeObject>(
  type: ResourceType<T>,
  { items, metadata }: ListPage<T>,
  seen: Set<string>,
): void {
  const [first] = items ?? []
  const marks = [
    ...(first === undefined ? [] : [`first ${first.metadata.namespace ?? ''}/${first.metadata.name}`]),
    ...(metadata.continue ? [`continue ${metadata.continue}`] : []),
  ]
  if (marks.some((mark) => seen.has(mark)))
    throw new KubeError('transport', 0, `the list of ${type.plural} begins again instead of ending`)
  for (const mark of marks) seen.add(mark)
}

const readerOf = perObject((fields: ReadFields) => new FieldReader(withIdentity(fields)))

/** Adds the fields that identify an object, by which responses are checked. */
function withIdentity({ members, others }: ReadFields): ReadFields {
  const { metadata = others } = members
  const identified =
    typeof metadata === 'boolean'
      ? { members: { name: true, namespace: true }, others: metadata }
      : { members: { ...metadata.members, name: true, namespace: true }, others: metadata.others }
  return { members: { ...members, apiVersion: true, kind: true, metadata: identified }, others }
}

/** Items of lists have no kind of their own; later readers should not depend on that. */
export function withType<T extends KubeObject>(type: ResourceType<T>, object: T): T {
  if (
    (object.kind as string | undefined) !== undefined &&
    (object.apiVersion as string | undefined) !== undefined
  )
    return object
  return { ...object, apiVersion: apiVersionOf(type), kind: type.kind }
}

function objectPath(type: ResourceType, key: ObjectKey, subresource?: string): string {
  if (key.name === '') throw new TypeError(`a ${type.kind} needs a name`)
  return pathOf(type, namespaceFor(type, key.namespace), key.name, subresource)
}

const dryRunQuery = (isDryRun = false): string => (isDryRun ? '?dryRun=All' : '')

/** Without this check, a namespaced object without a namespace would use another URL. */
function namespaceFor(type: ResourceType, namespace: string | undefined): string | undefined {
  if (!type.namespaced) return undefined
  if (namespace === undefined || namespace === '') throw new TypeError(`a ${type.kind} needs a namespace`)
  return namespace
}

function withResourceVersion(kind: string, patch: object, resourceVersion: string | undefined): object {
  if (resourceVersion === undefined || resourceVersion === '') return patch
  if (kind === 'json')
    throw new TypeError('a JSON patch tests the resourceVersion by an operation of its own')
  const { metadata } = patch as { readonly metadata?: object }
  return { ...patch, metadata: { ...metadata, resourceVersion } }
}
