/**
 * The Kubernetes API as the rest of Tenon uses it: a client for reads and writes, caches, controllers and events.
 */
import type { KubeObject, LabelSelector, NewObject, ResourceType } from '@tenon/api'
import type { LogFields } from '@tenon/runtime'

/** Identifies an object of a known type. `namespace` is absent for cluster-scoped types. */
export interface ObjectKey {
  readonly namespace?: string
  readonly name: string
}

/** Which members of an object are read; in arrays it applies to each element. */
export interface ReadFields {
  /** By name: read whole, not read, or read in part. A part is read whole if it is not an object or array. */
  readonly members: Readonly<Record<string, boolean | ReadFields>>
  /** Whether other members are read. */
  readonly others: boolean
}

export interface ListOptions {
  readonly namespace?: string
  readonly labelSelector?: LabelSelector
  readonly fieldSelector?: string
  /** What of each object is read; other parts may be absent. Default: all. */
  readonly fields?: ReadFields
}

/**
 * The queue in the client-side rate limit. `urgent` is for small requests that something waits for (a nomination, a
 * startup taint, a registration). `normal` keeps a fifth of the rate even during a flood of urgent requests. `together`
 * is for a few urgent requests that only make sense together: they are sent at once, and later requests wait longer.
 */
export type Lane = 'together' | 'urgent' | 'normal'

export interface WriteOptions {
  readonly signal?: AbortSignal
  /** Default `normal`. */
  readonly lane?: Lane
}

/** Options of creations and patches. */
export interface ChangeOptions extends WriteOptions {
  /** The server validates and responds, but changes nothing. */
  readonly isDryRun?: boolean
}

export interface UpdateOptions extends WriteOptions {
  /** Replaces only the status, or with a Scale the replicas. */
  readonly subresource?: 'status' | 'scale'
}

export interface PatchOptions extends ChangeOptions {
  /** The response for `scale` is a Scale. */
  readonly subresource?: 'status' | 'scale'
  /** Default `merge` (RFC 7386). */
  readonly kind?: 'merge' | 'strategic' | 'json'
  /** Part of a merge patch, so that the server responds with 409 if the object has changed. */
  readonly resourceVersion?: string
  /** The response is not read. */
  readonly isAnswerUnread?: boolean
  /** What of the object is read; other parts may be absent. Keep the value, as it is compiled once. */
  readonly fields?: ReadFields
}

export interface DeleteOptions extends WriteOptions {
  readonly preconditionUid?: string
  readonly preconditionResourceVersion?: string
  readonly gracePeriodSeconds?: number
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan'
}

export interface EvictOptions extends WriteOptions {
  /** Default: as the pod specifies. */
  readonly gracePeriodSeconds?: number
}

/**
 * Typed access to one API server. Every method rejects with {@link KubeError} for status 400 and above and for
 * transport failures; `get` returns `undefined` for 404.
 */
export interface KubeClient {
  get<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    options?: WriteOptions,
  ): Promise<T | undefined>
  /** The whole collection; reads pages internally. */
  list<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions & WriteOptions): Promise<T[]>
  create<T extends KubeObject>(
    type: ResourceType<T>,
    object: NewObject<T>,
    options?: ChangeOptions,
  ): Promise<T>
  /**
   * Replaces an object that was read before; a `conflict` error if it has changed since.
   * @throws TypeError for an object without a resourceVersion, which would overwrite changes of others.
   */
  update<T extends KubeObject>(type: ResourceType<T>, object: T, options?: UpdateOptions): Promise<T>
  patch(
    type: ResourceType,
    key: ObjectKey,
    patch: object,
    options: PatchOptions & { readonly isAnswerUnread: true },
  ): Promise<unknown>
  patch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: object,
    options?: Omit<PatchOptions, 'isAnswerUnread'>,
  ): Promise<T>
  /** Resolves when the server has accepted the deletion; a `notFound` error if the object does not exist. */
  delete(type: ResourceType, key: ObjectKey, options?: DeleteOptions): Promise<void>
  /** Requests an eviction with a UID precondition (policy/v1). */
  evict(pod: ObjectKey, uid: string, options?: EvictOptions): Promise<void>
  /** `gitVersion` of the server, for example `v1.34.1`. */
  serverVersion(): Promise<string>
}

/** Why a call to the API server failed. */
export type KubeErrorKind =
  | 'notFound'
  | 'alreadyExists'
  | 'conflict'
  | 'gone'
  | 'invalid'
  | 'forbidden'
  | 'unauthorized'
  | 'tooManyRequests'
  | 'server'
  | 'transport'
  | 'other'

/** A failed call to the API server. */
export class KubeError extends Error {
  readonly kind: KubeErrorKind
  /** HTTP status, or 0 for a transport failure. */
  readonly status: number
  /** `Status.reason` when the server sent one. */
  readonly reason: string | undefined
  readonly retryAfterMs: number | undefined
  /** Invalid fields that the server names, such as `spec.replicas`; undefined if it names none. */
  readonly fields: readonly string[] | undefined
  /** The message of the server's Status, without the request. */
  readonly serverMessage: string | undefined
  /**
   * The causes that the server names, such as the PodDisruptionBudget that refuses an eviction; undefined if it names
   * none.
   */
  readonly causes: readonly string[] | undefined

  constructor(
    kind: KubeErrorKind,
    status: number,
    message: string,
    details: {
      reason?: string
      retryAfterMs?: number
      fields?: readonly string[]
      serverMessage?: string
      causes?: readonly string[]
      cause?: unknown
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'KubeError'
    this.kind = kind
    this.status = status
    this.reason = details.reason
    this.retryAfterMs = details.retryAfterMs
    this.fields = details.fields
    this.serverMessage = details.serverMessage
    this.causes = details.causes
  }
}

/**
 * Whether `error` is a {@link KubeError} of one of `kinds`, or of any kind if none is given. Compares names, as an
 * external provider has its own copy of this package, but uses our client.
 */
export function isKubeError(error: unknown, ...kinds: readonly KubeErrorKind[]): error is KubeError {
  if (!(error instanceof Error) || error.name !== 'KubeError') return false
  const { kind } = error as Partial<KubeError>
  return kind !== undefined && (kinds.length === 0 || kinds.includes(kind))
}

/** How the API server reports that this process lacks a right. */
const missingRight = /\bcannot (get|list|watch|create|update|patch|delete|deletecollection) resource\b/

/** Whether a right is missing, as opposed to a refusal by an admission webhook or quota. */
export function isMissingRight(error: unknown): boolean {
  return isKubeError(error, 'forbidden') && missingRight.test(error.message)
}

/**
 * Whether the server does not serve the requested kind. For some groups kube-apiserver says so in a Status, for others
 * in plain text like a proxy, so the kind of the error alone does not tell.
 */
export function isNotServed(error: unknown): boolean {
  return isKubeError(error) && error.status === 404
}

/** Whether the server does not serve the kind, or the right to read it is missing. */
export function isUnavailable(error: unknown): error is KubeError {
  return isKubeError(error) && (isNotServed(error) || error.kind === 'forbidden')
}

/** A change of one object in a followed collection. */
export type Change<T> =
  | { readonly kind: 'added'; readonly object: T }
  | { readonly kind: 'updated'; readonly object: T; readonly old: T }
  | { readonly kind: 'deleted'; readonly object: T }

/**
 * A local copy of one collection that follows the server. Objects are shared: never change them. Reads are synchronous
 * and may lag behind the server.
 */
export interface Cache<T extends KubeObject> {
  readonly type: ResourceType<T>
  get(key: ObjectKey): T | undefined
  /** In no particular order; a new array. */
  list(): T[]
  readonly size: number
  /** Declares an index before the cache is started; `values` may return several keys per object. */
  addIndex(name: string, values: (object: T) => readonly string[]): void
  byIndex(name: string, value: string): T[]
  /**
   * Calls `listener` for every later change, in order, synchronously with the cache's update. Existing objects are
   * announced as `added`: at once, or in steps if that takes long. Objects that change before their announcement are
   * announced in their new state; those that are deleted before it are not announced. Returns a function that removes
   * the listener.
   */
  onChange(listener: (change: Change<T>) => void): () => void
  /**
   * Requests a new list because the content contradicts other answers of the API server. Repeated calls get growing
   * pauses.
   */
  relist(reason: string): void
  /** Resolves after the first complete list. */
  synced(signal?: AbortSignal): Promise<void>
  readonly isSynced: boolean
  /** Whether what is known cannot be continued, and the list that replaces it has yet to come. */
  readonly isListedAgain: boolean
  /**
   * Whether the server's last response was that it does not serve the kind, or that the right to read it is missing.
   */
  readonly isRefused: boolean
}

/** How a collection is followed; see {@link CacheRegistry.cache}. */
export interface CachedCollection<T extends KubeObject> {
  readonly transform?: (object: T, held?: T) => T | undefined
  readonly fields?: ReadFields
  readonly gatherMs?: number
  /** Whether many such objects may disappear at once without a deletionTimestamp. Default: no object may. */
  readonly endsUnannounced?: (object: T) => boolean
  /** Whether the objects hold something back, so that none is gone before a list confirms it. Default: false. */
  readonly areLimits?: boolean
  /** The part of the collection that is followed. Default: all. */
  readonly namespace?: string
  readonly fieldSelector?: string
  /**
   * The kind may not be served, or the right to read it may be missing, which is logged once. Nothing waits for its
   * first list; with `ifRefused`, waits end when the server has refused it.
   */
  readonly isOptional?: boolean | 'ifRefused'
}

/** The caches of one process; each type is followed once for all callers. */
export interface CacheRegistry {
  /**
   * The cache of a type, created by the first call. Options of the first call that has any apply; they must be given
   * before the start.
   * @param options.transform trims objects before they are stored, or returns undefined to leave them out. Receives the
   * stored object, whose parts it may reuse.
   * @param options.fields what `transform` reads, so that the rest need not be parsed. Default: all.
   * @param options.gatherMs maximum delay of a change; changes within it are sent together, as waking up for each takes
   * longer than handling it. If absent, each change is handled before the next.
   */
  cache<T extends KubeObject>(type: ResourceType<T>, options?: CachedCollection<T>): Cache<T>
  /** Starts all existing caches, and later ones when they are created, until `signal` aborts. */
  start(signal: AbortSignal): void
  /** Resolves after the first complete list of every cache. */
  synced(signal?: AbortSignal): Promise<void>
  /** Kinds without a first list, for readiness and logs. */
  readonly waitingFor: readonly string[]
  /** The number of received objects of each of these kinds, as a list may take long. */
  readonly arrivals: ReadonlyMap<string, number>
}

/** When to reconcile again. */
export type ReconcileResult =
  | { readonly kind: 'done' }
  /** After this delay; resets the key's back-off. */
  | { readonly kind: 'after'; readonly delayMs: number }
  /** With the key's growing back-off, without counting as an error. */
  | { readonly kind: 'backoff' }

export const done: ReconcileResult = { kind: 'done' }

/** A controller. `reconcile` receives a key, never an event. */
export interface ControllerOptions {
  /** As in metrics and logs, such as `nodeclaim.lifecycle`. */
  readonly name: string
  /** How many keys are reconciled at the same time; never the same key twice. */
  readonly concurrency: number
  /** Per-key back-off after errors: doubles from `baseMs` up to `capMs`. */
  readonly backoff?: { readonly baseMs: number; readonly capMs: number }
  /** Token bucket over all keys. */
  readonly rate?: { readonly perSecond: number; readonly burst: number }
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<ReconcileResult>
  /** Log fields of a key's reconcile. Default: only the key. */
  readonly describe?: (key: string) => LogFields
}

/** A running or startable controller. Keys are strings; `ns/name` or `name` by convention. */
export interface Controller {
  readonly name: string
  /** Requests a reconcile of `key`, now or after a delay; duplicates are merged. */
  enqueue(key: string, delayMs?: number): void
  start(): void
  /** Aborts running reconciles and waits for them. */
  stop(): Promise<void>
  /** Number of waiting and running keys, for tests, metrics and shutdown. */
  readonly depth: number
}

/** An event about an object, as users see it in `kubectl describe`. */
export interface EventInput {
  readonly object: KubeObject
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
  /** Events with the same reason and values are dropped for `dedupeTtlMs` (default 2 min). */
  readonly dedupe?: readonly string[]
  readonly dedupeTtlMs?: number
}

/** Records events. Never throws and never blocks the caller. */
export interface EventRecorder {
  record(event: EventInput): void
}
