/**
 * What the rest of Tenon knows of a Kubernetes API: a client for reads and writes, caches that
 * follow the server, controllers that run one object at a time, and events.
 */
import type { KubeObject, LabelSelector, NewObject, ResourceType } from '@tenon/api'
import type { LogFields } from '@tenon/runtime'

/** Names one object of a known type. `namespace` is absent for cluster-scoped types. */
export interface ObjectKey {
  readonly namespace?: string
  readonly name: string
}

/** Which members of an object are read; of an array, those of each of its elements. */
export interface ReadFields {
  /** By name: read whole, not read, or read in part. A part that is not an object or array is read whole. */
  readonly members: Readonly<Record<string, boolean | ReadFields>>
  /** Whether members without a name above are read. */
  readonly others: boolean
}

export interface ListOptions {
  readonly namespace?: string
  readonly labelSelector?: LabelSelector
  readonly fieldSelector?: string
  /** What of each object is read; the rest may be there or not. All of it without this. */
  readonly fields?: ReadFields
}

/**
 * Which line a request waits in when the client's own rate limit holds it back. `urgent` goes first
 * and is for small requests that something waits for (a nomination, a startup taint, a
 * registration); `normal` keeps a fifth of the rate even behind a flood of them. `together` is for a few
 * urgent ones that are of no use one after the other: they are sent at once, and what follows waits the longer.
 */
export type Lane = 'together' | 'urgent' | 'normal'

export interface WriteOptions {
  readonly signal?: AbortSignal
  /** Default `normal`. */
  readonly lane?: Lane
}

/** Of creations and patches. */
export interface ChangeOptions extends WriteOptions {
  /** The server checks and answers as if it did it, and does nothing. */
  readonly isDryRun?: boolean
}

export interface UpdateOptions extends WriteOptions {
  /** Replaces the status alone. */
  readonly subresource?: 'status'
}

export interface PatchOptions extends ChangeOptions {
  readonly subresource?: 'status'
  /** Default `merge` (RFC 7386). */
  readonly kind?: 'merge' | 'strategic' | 'json'
  /** Sent inside a merge patch, so that the server answers 409 when the object has moved on. */
  readonly resourceVersion?: string
  /** Nobody reads what becomes of the object: its text is skipped. */
  readonly isAnswerUnread?: boolean
  /** What of the object is read; the rest may be there or not. Keep the value: it is prepared once. */
  readonly fields?: ReadFields
}

export interface DeleteOptions extends WriteOptions {
  readonly preconditionUid?: string
  readonly preconditionResourceVersion?: string
  readonly gracePeriodSeconds?: number
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan'
}

export interface EvictOptions extends WriteOptions {
  /** How long the pod may take to end; as long as it asks for without this. */
  readonly gracePeriodSeconds?: number
}

/**
 * Typed access to one API server. Every method rejects with {@link KubeError} for answers of 400
 * and above and for transport failures; `get` answers `undefined` for 404.
 */
export interface KubeClient {
  get<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    options?: WriteOptions,
  ): Promise<T | undefined>
  /** The whole collection, paged in the background. */
  list<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions & WriteOptions): Promise<T[]>
  create<T extends KubeObject>(
    type: ResourceType<T>,
    object: NewObject<T>,
    options?: ChangeOptions,
  ): Promise<T>
  /**
   * Replaces a whole object that was read before; a `conflict` error when it has changed since.
   * @throws TypeError for an object without a resourceVersion, which would overwrite what others wrote.
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
  /** Resolves when the server has accepted; an object that is already gone is a `notFound` error. */
  delete(type: ResourceType, key: ObjectKey, options?: DeleteOptions): Promise<void>
  /** Asks for an eviction with a UID precondition (policy/v1). */
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
  /** Fields that the server names as wrong, such as `spec.replicas`; undefined when it names none. */
  readonly fields: readonly string[] | undefined
  /** What the server said in its Status, without what was asked for. */
  readonly serverMessage: string | undefined
  /** What the server names as causes, such as the disruption budget that refuses an eviction; undefined when it names none. */
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
 * True when `error` is a {@link KubeError} of one of `kinds`, or of any when none is given. A provider from outside
 * brings its own copy of this package, while its client is of ours: the name decides, not the class.
 */
export function isKubeError(error: unknown, ...kinds: readonly KubeErrorKind[]): error is KubeError {
  if (!(error instanceof Error) || error.name !== 'KubeError') return false
  const { kind } = error as Partial<KubeError>
  return kind !== undefined && (kinds.length === 0 || kinds.includes(kind))
}

/** How the API server says that this process lacks a right, which somebody has to grant. */
const missingRight = /\bcannot (get|list|watch|create|update|patch|delete|deletecollection) resource\b/

/** Whether the API server refuses for want of a right, not because somebody else will not have the object. */
export function isMissingRight(error: unknown): boolean {
  return isKubeError(error, 'forbidden') && missingRight.test(error.message)
}

/**
 * Whether the server does not serve the kind whose collection was asked for. Of some groups kube-apiserver says so in a
 * Status, of all others in plain text, as a proxy would: ask this, and not for the kind of the error.
 */
export function isNotServed(error: unknown): boolean {
  return isKubeError(error) && error.status === 404
}

/** Whether the server said that it does not serve what was asked for, or that there is no right to it. */
export function isUnavailable(error: unknown): error is KubeError {
  return isKubeError(error) && (isNotServed(error) || error.kind === 'forbidden')
}

/** What happened to one object of a followed collection. */
export type Change<T> =
  | { readonly kind: 'added'; readonly object: T }
  | { readonly kind: 'updated'; readonly object: T; readonly old: T }
  | { readonly kind: 'deleted'; readonly object: T }

/**
 * A local copy of one collection that follows the server. Objects are shared: never change them.
 * Reads are synchronous and may lag behind the server.
 */
export interface Cache<T extends KubeObject> {
  readonly type: ResourceType<T>
  get(key: ObjectKey): T | undefined
  /** In no particular order; a fresh array. */
  list(): T[]
  readonly size: number
  /** Declares an index before the cache is started; `values` may name several keys per object. */
  addIndex(name: string, values: (object: T) => readonly string[]): void
  byIndex(name: string, value: string): T[]
  /**
   * Calls `listener` for every later change, in order, synchronously with the cache's own update;
   * objects present already are announced as `added` at once, or in steps when that takes long. What changes
   * before its announcement is announced as it is then, and what is gone before is not. Answers the
   * unsubscriber.
   */
  onChange(listener: (change: Change<T>) => void): () => void
  /**
   * Takes a new list soon: the content does not agree with what the API server says of single objects. Calls in a row
   * lead to lists with growing pauses.
   */
  relist(reason: string): void
  /** Resolves when the first complete list is in the cache. */
  synced(signal?: AbortSignal): Promise<void>
  readonly isSynced: boolean
  /** The server's last word is that it does not serve the kind, or that there is no right to read it. */
  readonly isRefused: boolean
}

/** How a collection is followed; see {@link CacheRegistry.cache}. */
export interface CachedCollection<T extends KubeObject> {
  readonly transform?: (object: T, held?: T) => T | undefined
  readonly fields?: ReadFields
  readonly gatherMs?: number
  /** Whether many such objects may be gone at once without a deletionTimestamp before; none without it. */
  readonly endsUnannounced?: (object: T) => boolean
  /** The part of the collection that is followed; all of it without these. */
  readonly namespace?: string
  readonly fieldSelector?: string
  /**
   * The kind may not be served, or there may be no right to read it, which is told once. Nothing waits for the
   * first list; with `ifRefused` everything does until the server has refused it.
   */
  readonly isOptional?: boolean | 'ifRefused'
}

/** The caches of one process: each type is followed once, whoever asks for it. */
export interface CacheRegistry {
  /**
   * The cache of a type, made at the first call. The first options that are given count, by whichever call
   * before the start.
   * @param options.transform trims objects before they are kept, or answers undefined for those that are not to
   * be kept. It is told what is held in the place of the object, whose parts it may use again.
   * @param options.fields what `transform` reads of them, so that the rest need not be parsed; all without it.
   * @param options.gatherMs lets changes be told so much later, and many in a row: to be woken for each takes longer
   * than what is done about it. Without it everybody can react to each before the next is told.
   */
  cache<T extends KubeObject>(type: ResourceType<T>, options?: CachedCollection<T>): Cache<T>
  /** Starts every cache made so far, and each later one at once, until `signal` aborts. */
  start(signal: AbortSignal): void
  /** Resolves when the first complete list of every cache has arrived. */
  synced(signal?: AbortSignal): Promise<void>
  /** Kinds whose first list has not arrived, for readiness and logs. */
  readonly waitingFor: readonly string[]
  /** How many objects have arrived of each of those kinds: a list may take its time. */
  readonly arrivals: ReadonlyMap<string, number>
}

/** What a reconcile wants next. */
export type ReconcileResult =
  | { readonly kind: 'done' }
  /** Again after this delay; resets the key's back-off. */
  | { readonly kind: 'after'; readonly delayMs: number }
  /** Again with the key's growing back-off, without counting as an error. */
  | { readonly kind: 'backoff' }

export const done: ReconcileResult = { kind: 'done' }

/** One loop: gets a name, never an event, and brings that object a step closer to what is wanted. */
export interface ControllerOptions {
  /** As in metrics and logs, for example `nodeclaim.lifecycle`. */
  readonly name: string
  /** Keys worked on at the same time; the same key never twice at once. */
  readonly concurrency: number
  /** Per-key back-off after errors: doubles from `baseMs` up to `capMs`. */
  readonly backoff?: { readonly baseMs: number; readonly capMs: number }
  /** Token bucket over all keys. */
  readonly rate?: { readonly perSecond: number; readonly burst: number }
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<ReconcileResult>
  /** What log lines of a reconcile say of its object; just the key without this. */
  readonly describe?: (key: string) => LogFields
}

/** A running or startable controller. Keys are strings; `ns/name` or `name` by convention. */
export interface Controller {
  readonly name: string
  /** Asks for a reconcile of `key`, now or after a delay; duplicates collapse. */
  enqueue(key: string, delayMs?: number): void
  start(): void
  /** Lets running reconciles see an abort and waits for them. */
  stop(): Promise<void>
  /** Keys waiting or running; for tests, metrics and shutdown. */
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

/** Records events; never throws and never blocks the caller. */
export interface EventRecorder {
  record(event: EventInput): void
}
