/**
 * The interfaces between the parts of the embedded cluster. API server, schemas, controllers, scheduler, kubelets and
 * simulated clouds only know each other by these types.
 */
import type {
  KubeObject,
  LabelSelector,
  ResourceList,
  ResourceSliceTemplate,
  ResourceType,
  Status,
  Taint,
} from '@tenon/api'

/** A stored object: plain JSON data, shared, never changed in place. */
export type StoredObject = KubeObject & { readonly [field: string]: unknown }

/** Why an object is invalid, worded like a Kubernetes API server. */
export interface FieldError {
  /** Path such as `spec.template.spec.containers[0].name`. */
  readonly field: string
  readonly kind:
    | 'required'
    | 'invalid'
    | 'notSupported'
    | 'duplicate'
    | 'forbidden'
    | 'tooLong'
    | 'tooMany'
    | 'typeInvalid'
    | 'notFound'
  /** The invalid value, as JSON in the message; absent for `required` and `forbidden`. */
  readonly value?: unknown
  readonly detail: string
}

/** A refusal with the Status for the client. */
export class ApiError extends Error {
  readonly status: Status

  constructor(status: Status) {
    super(status.message ?? status.reason ?? 'unknown error')
    this.name = 'ApiError'
    this.status = status
  }

  /** HTTP status code. */
  get code(): number {
    return this.status.code ?? 500
  }
}

/** One column of a server-side table (`kubectl get`). */
export interface TableColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly format?: string
  readonly description: string
  /** 0 is always shown, higher values only with `-o wide`. */
  readonly priority: number
  /** The cell. `nowMs` is for ages; a `date` cell returns a duration (`5m`). */
  readonly cell: (object: StoredObject, nowMs: number) => string | number | boolean | null
}

/**
 * A served kind: its schema (for defaults, pruning, validation, merging and OpenAPI), selectors and columns. The same
 * for built-in kinds and custom resources.
 */
export interface ResourceDefinition {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly listKind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  /** Besides the collection and the object: `status`, `scale`, `binding`, `eviction`, `token`, … */
  readonly subresources: readonly string[]
  /** Whether this is the stored version (always true for built-in kinds). */
  readonly storage: boolean
  readonly columns: readonly TableColumn[]
  /** Paths of the replica counts for `/scale`, if it is served. */
  readonly scale?: {
    readonly specReplicasPath: string
    readonly statusReplicasPath: string
    readonly labelSelectorPath?: string
  }
  /** Whether a spec change increments `metadata.generation`. */
  readonly hasGeneration: boolean
  /** The schema of one object, for merging, field ownership and OpenAPI. */
  readonly schema: SchemaNode
  /**
   * Sets defaults; returns the same object if none was missing. Parts shared with `old`, the stored object, have theirs
   * already.
   */
  readonly applyDefaults: (object: StoredObject, old?: StoredObject) => StoredObject
  /**
   * Drops unknown fields and returns their paths; the caller applies `fieldValidation`. Parts shared with `old`, the
   * stored object, have none.
   */
  readonly prune: (
    object: StoredObject,
    old?: StoredObject,
  ) => {
    readonly object: StoredObject
    readonly unknownFields: readonly string[]
  }
  /** Validates an object; `old` is given for an update. Empty = valid. */
  readonly validate: (object: StoredObject, old: StoredObject | undefined) => readonly FieldError[]
  /** Values of selectable fields besides `metadata.name` and `metadata.namespace`. */
  readonly selectableFields: (object: StoredObject) => Readonly<Record<string, string>>
}

/** The schema of a value, with what merging, server-side apply, pruning and OpenAPI need. */
export interface SchemaNode {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'any'
  readonly format?: string
  readonly description?: string
  /** Name of the model (`io.k8s.api.core.v1.PodSpec`), for `$ref` in OpenAPI. */
  readonly model?: string
  readonly properties?: Readonly<Record<string, SchemaNode>> | (() => Readonly<Record<string, SchemaNode>>)
  readonly required?: readonly string[]
  /** Value type of a map. */
  readonly additionalProperties?: SchemaNode
  readonly items?: SchemaNode
  /** Server-side apply: how lists merge. Absent = atomic. */
  readonly listType?: 'atomic' | 'set' | 'map'
  readonly listMapKeys?: readonly string[]
  /** Server-side apply: `atomic` maps are owned as a whole. */
  readonly mapType?: 'granular' | 'atomic'
  /** Strategic merge patch: key and strategy of this list. */
  readonly patchMergeKey?: string
  readonly patchStrategy?: string
  readonly preserveUnknownFields?: boolean
  readonly intOrString?: boolean
  readonly enum?: readonly unknown[]
  readonly default?: unknown
}

/** Options of a list within the process. */
export interface LocalListOptions {
  readonly namespace?: string
  readonly labelSelector?: LabelSelector
}

/** Handles changes, in commit order and asynchronously, never during a write. */
export interface LocalHandler<T> {
  /** Also called once for every object that exists at the subscription. */
  readonly added?: (object: T) => void
  readonly updated?: (object: T, old: T) => void
  readonly deleted?: (object: T) => void
}

/** The `scale` subresource of an object. */
export interface LocalScale {
  /** Desired replicas. */
  readonly replicas: number
  /** Whether pods with these labels are replicas; never if the object has no selector. */
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean
}

/** Options of a deletion within the process; defaults as over HTTP. */
export interface LocalDeleteOptions {
  readonly gracePeriodSeconds?: number
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan'
  readonly preconditionUid?: string
  readonly preconditionResourceVersion?: string
}

/**
 * The API server for parts of this process: the same admission, defaulting, validation, versioning and watch semantics
 * as over HTTP, without sockets or JSON. Reads see the latest committed state. Writes are synchronous and throw {@link
 * ApiError}.
 */
export interface LocalApi {
  get<T extends KubeObject>(type: ResourceType<T>, namespace: string | undefined, name: string): T | undefined
  /** In key order (namespace, then name). The array belongs to the caller; its objects are shared. */
  list<T extends KubeObject>(type: ResourceType<T>, options?: LocalListOptions): T[]
  create<T extends KubeObject>(type: ResourceType<T>, object: T): T
  /** Optimistic: a `metadata.resourceVersion` in `object` must match (409 otherwise). */
  update<T extends KubeObject>(type: ResourceType<T>, object: T): T
  updateStatus<T extends KubeObject>(type: ResourceType<T>, object: T): T
  /**
   * JSON merge patch of the object or a subresource (`finalize` of namespaces sets spec.finalizers, `resize` of pods
   * the resources of their containers).
   */
  patch<T extends KubeObject>(
    type: ResourceType<T>,
    namespace: string | undefined,
    name: string,
    patch: object,
    subresource?: 'status' | 'finalize' | 'resize',
  ): T
  delete(type: ResourceType, namespace: string | undefined, name: string, options?: LocalDeleteOptions): void
  /** The Scale of an object; `undefined` if it does not exist. Throws 404 for kinds without one. */
  scale(type: ResourceType, namespace: string | undefined, name: string): LocalScale | undefined
  /** Sets the desired replicas, like `PUT NAME/scale`. */
  setScale(type: ResourceType, namespace: string | undefined, name: string, replicas: number): void
  /** Binds a pod to a node, like `POST pods/NAME/binding` (409 if it is bound already). */
  bind(namespace: string, podName: string, nodeName: string): void
  /** Evicts a pod if its PDBs allow it, like `POST pods/NAME/eviction` (429 if they do not). */
  evict(namespace: string, podName: string): void
  /** Calls `handler` for existing and later objects until the returned function is called. */
  subscribe<T extends KubeObject>(type: ResourceType<T>, handler: LocalHandler<T>): () => void
  /** All served kinds, including custom resources. */
  definitions(): readonly ResourceDefinition[]
}

/** A node for a kubelet to register and run. */
export interface KubeletSpec {
  readonly nodeName: string
  readonly providerId: string
  readonly labels: Readonly<Record<string, string>>
  /** Taints of a new Node, in addition to condition taints. */
  readonly taints: readonly Taint[]
  readonly capacity: ResourceList
  readonly allocatable: ResourceList
  readonly addresses: readonly { readonly type: string; readonly address: string }[]
  readonly kubeletVersion: string
  readonly systemUuid: string
  /** Maximum pods that start at the same time; 0 = no limit. */
  readonly maxParallelStarts?: number
  /** The node was Ready before this kubelet took it over, and stays so. */
  readonly wasReady?: boolean
  /** Devices that the node's drivers publish once they run; default: none. */
  readonly devices?: readonly ResourceSliceTemplate[]
  /** The node registers and reports, but never as Ready. */
  readonly neverReady?: boolean
}

/** A running kubelet. */
export interface KubeletHandle {
  readonly nodeName: string
  /** Ends heartbeats and pods, like a power loss. The Node object stays. */
  stop(): void
}

/** Starts kubelets inside the process. */
export interface KubeletRunner {
  start(spec: KubeletSpec): KubeletHandle
}

/** What a booted instance knows about its cluster. */
export interface JoinCredentials {
  /** `https://host:port` of the API server. */
  readonly endpoint: string
  /** PEM of the certificate authority that the instance trusts. */
  readonly certificateAuthority: string
  /** `id.secret`. */
  readonly bootstrapToken: string
}

/** The result of a join. */
export type JoinResult =
  | { readonly kind: 'joined'; readonly kubelet: KubeletHandle }
  | { readonly kind: 'refused'; readonly reason: string }

/** Lets a booted instance join like kubelet's TLS bootstrap: all credentials must be right. */
export interface NodeJoiner {
  join(credentials: JoinCredentials, kubelet: KubeletSpec): Promise<JoinResult>
  /** Continues with an instance that joined in an earlier run. */
  resume(kubelet: KubeletSpec): KubeletHandle
}
