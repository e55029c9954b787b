/**
 * The seams inside the embedded cluster. The API server (storage, HTTP), the schemas (what a kind
 * looks like and how it merges), the controllers, the scheduler, the kubelets and the simulated
 * clouds know each other only through these types.
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

/** One reason why an object was refused, in the words of a Kubernetes API server. */
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
  /** The offending value, shown as JSON in the message; absent for `required` and `forbidden`. */
  readonly value?: unknown
  readonly detail: string
}

/** A refusal with the Status object that a client receives. */
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
  /** 0 is always shown, greater only with `-o wide`. */
  readonly priority: number
  /** The cell. `nowMs` serves ages; a `date` cell answers the duration text (`5m`). */
  readonly cell: (object: StoredObject, nowMs: number) => string | number | boolean | null
}

/**
 * What a served kind looks like: shape (for defaults, pruning, validation, merging and OpenAPI),
 * selectors and columns. Built-in kinds and custom resources answer the same questions.
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
  /** Whether this version is the stored one (always true for built-in kinds). */
  readonly storage: boolean
  readonly columns: readonly TableColumn[]
  /** Paths of the replica counts for `/scale`, when served. */
  readonly scale?: {
    readonly specReplicasPath: string
    readonly statusReplicasPath: string
    readonly labelSelectorPath?: string
  }
  /** True when a spec change increases `metadata.generation`. */
  readonly hasGeneration: boolean
  /** The type of one object, for merging, field ownership and OpenAPI. */
  readonly schema: SchemaNode
  /**
   * Fills defaults in; returns the same object when nothing was missing. Parts shared with `old`, which
   * is stored, are taken to have theirs.
   */
  readonly applyDefaults: (object: StoredObject, old?: StoredObject) => StoredObject
  /**
   * Drops unknown fields and names their paths; the caller refuses, warns or ignores as
   * `fieldValidation` says. Parts shared with `old`, which is stored, are taken to have none.
   */
  readonly prune: (
    object: StoredObject,
    old?: StoredObject,
  ) => {
    readonly object: StoredObject
    readonly unknownFields: readonly string[]
  }
  /** Checks an object; `old` is given on update. Empty = valid. */
  readonly validate: (object: StoredObject, old: StoredObject | undefined) => readonly FieldError[]
  /** Values for field selectors beyond `metadata.name` and `metadata.namespace`. */
  readonly selectableFields: (object: StoredObject) => Readonly<Record<string, string>>
}

/** The shape of a value: enough for merging, server-side apply, pruning and OpenAPI. */
export interface SchemaNode {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'any'
  readonly format?: string
  readonly description?: string
  /** Named model this node stands for (`io.k8s.api.core.v1.PodSpec`), for `$ref` in OpenAPI. */
  readonly model?: string
  readonly properties?: Readonly<Record<string, SchemaNode>> | (() => Readonly<Record<string, SchemaNode>>)
  readonly required?: readonly string[]
  /** Value type of a map. */
  readonly additionalProperties?: SchemaNode
  readonly items?: SchemaNode
  /** Server-side apply: how lists merge. Absent means atomic. */
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

/** Options of a list read from inside the process. */
export interface LocalListOptions {
  readonly namespace?: string
  readonly labelSelector?: LabelSelector
}

/** Reactions to changes; delivered in commit order, asynchronously, never while a write runs. */
export interface LocalHandler<T> {
  /** Also called once for every object that existed when the subscription began. */
  readonly added?: (object: T) => void
  readonly updated?: (object: T, old: T) => void
  readonly deleted?: (object: T) => void
}

/** What the `scale` subresource of an object tells. */
export interface LocalScale {
  /** Replicas asked for. */
  readonly replicas: number
  /** Whether pods with these labels are replicas; never when the object tells no selector. */
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean
}

/** Options of a delete from inside the process; what is absent is as over HTTP. */
export interface LocalDeleteOptions {
  readonly gracePeriodSeconds?: number
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan'
  readonly preconditionUid?: string
  readonly preconditionResourceVersion?: string
}

/**
 * The API server as the parts inside the process use it: the same admission, defaulting,
 * validation, versioning and watch semantics as over HTTP, without sockets or JSON. Reads see the
 * latest committed state. Writes are synchronous and throw {@link ApiError}.
 */
export interface LocalApi {
  get<T extends KubeObject>(type: ResourceType<T>, namespace: string | undefined, name: string): T | undefined
  /** In key order (namespace, then name). The array is the caller's; its objects are shared. */
  list<T extends KubeObject>(type: ResourceType<T>, options?: LocalListOptions): T[]
  create<T extends KubeObject>(type: ResourceType<T>, object: T): T
  /** Optimistic: a `metadata.resourceVersion` in `object` must match (409 otherwise). */
  update<T extends KubeObject>(type: ResourceType<T>, object: T): T
  updateStatus<T extends KubeObject>(type: ResourceType<T>, object: T): T
  /**
   * JSON merge patch, on the object or a subresource (`finalize` of namespaces sets spec.finalizers, `resize` of pods
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
  /** The scale of an object; `undefined` when there is no such object. Throws 404 for kinds without one. */
  scale(type: ResourceType, namespace: string | undefined, name: string): LocalScale | undefined
  /** Asks for another number of replicas, as `PUT NAME/scale` does. */
  setScale(type: ResourceType, namespace: string | undefined, name: string, replicas: number): void
  /** Binds a pod to a node, as `POST pods/NAME/binding` does (409 when already bound). */
  bind(namespace: string, podName: string, nodeName: string): void
  /** Evicts a pod through its PDBs, as `POST pods/NAME/eviction` does (429 when not allowed). */
  evict(namespace: string, podName: string): void
  /** Calls `handler` for existing and later objects until the returned function is called. */
  subscribe<T extends KubeObject>(type: ResourceType<T>, handler: LocalHandler<T>): () => void
  /** Resource definitions served now, custom resources included. */
  definitions(): readonly ResourceDefinition[]
}

/** A node that a kubelet is to register and keep. */
export interface KubeletSpec {
  readonly nodeName: string
  readonly providerId: string
  readonly labels: Readonly<Record<string, string>>
  /** Registered on the Node besides the condition taints, if the Node does not exist yet. */
  readonly taints: readonly Taint[]
  readonly capacity: ResourceList
  readonly allocatable: ResourceList
  readonly addresses: readonly { readonly type: string; readonly address: string }[]
  readonly kubeletVersion: string
  readonly systemUuid: string
  /** Pods started at once on this node at most; 0 means no bound. */
  readonly maxParallelStarts?: number
  /** The node was Ready before this kubelet took it over, and goes on so. */
  readonly wasReady?: boolean
  /** Devices that the node's drivers publish once they run; none unless given. */
  readonly devices?: readonly ResourceSliceTemplate[]
  /** The node registers and reports, but never as Ready. */
  readonly neverReady?: boolean
}

/** A running kubelet. */
export interface KubeletHandle {
  readonly nodeName: string
  /** Ends heartbeats and pod keeping, as when the instance loses power. The Node object stays. */
  stop(): void
}

/** Starts kubelets inside the process. */
export interface KubeletRunner {
  start(spec: KubeletSpec): KubeletHandle
}

/** What a booted instance was told about the cluster it should join. */
export interface JoinCredentials {
  /** `https://host:port` of the API server. */
  readonly endpoint: string
  /** PEM of the certificate authority the instance was told to trust. */
  readonly certificateAuthority: string
  /** `id.secret`. */
  readonly bootstrapToken: string
}

/** Whether an instance was let in. */
export type JoinResult =
  | { readonly kind: 'joined'; readonly kubelet: KubeletHandle }
  | { readonly kind: 'refused'; readonly reason: string }

/** Lets a booted instance join, as kubelet's TLS bootstrap would: all credentials must be right. */
export interface NodeJoiner {
  join(credentials: JoinCredentials, kubelet: KubeletSpec): Promise<JoinResult>
  /** Continues with an instance that an earlier run of the cluster let in. */
  resume(kubelet: KubeletSpec): KubeletHandle
}
