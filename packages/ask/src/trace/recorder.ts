/** Records from a live cluster what a replay needs. Reads only (ask.md 6). */
import {
  annotations,
  type DaemonSet,
  karpenterKinds,
  kinds,
  type KubeObject,
  labels,
  type Node,
  type NodePool,
  ownValue,
  type Pod,
  type PodDisruptionBudget,
  type PricePerHour,
  type ResourceType,
  unregisteredTaint,
} from '@tenon/api'
import { type Cache, createCacheRegistry, isKubeError, type WatchingKubeClient } from '@tenon/kube'
import type { Clock, Logger, Random } from '@tenon/runtime'
import type { Redactor } from '../snapshot/redact.ts'
import type { SnapshotCatalogue } from '../snapshot/snapshot.ts'
import { PodLog } from './pod-log.ts'
import { redactedSink } from './redacted-records.ts'
import { digestOf, shapeOf, specOf } from './shapes.ts'
import type { TraceSink } from './trace-file.ts'
import { emptyTraceState, type TraceState } from './trace-state.ts'

/** How often blocks are written; a crash loses no more than this. */
const flushMs = 30_000
/** Pods come in bursts, and each scan has a fixed cost. */
const gatherMs = 200

export interface RecorderDependencies {
  readonly client: WatchingKubeClient
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly sink: TraceSink & { flush(): Promise<void> }
}

export interface RecorderOptions {
  /** Name and version of this program. */
  readonly program: string
  readonly source: string
  /** Absent if unknown. */
  readonly catalogues?: readonly SnapshotCatalogue[]
  /** The price of a node, if known. */
  readonly priceOf: (node: Node) => PricePerHour
  /** Where an earlier session ended; absent for a new recording. */
  readonly resume?: TraceState
  /** Replaces names by pseudonyms; further sessions need the same key. */
  readonly redactor?: Redactor
  /**
   * Whether to read PriorityClasses; otherwise priorities are taken from pods, as a controller may not list the
   * classes. Default: true.
   */
  readonly readsPriorityClasses?: boolean
}

export class Recorder {
  readonly #deps: RecorderDependencies
  readonly #sink: RecorderDependencies['sink']
  readonly #options: RecorderOptions
  readonly #recordedClasses = new Set<string>()
  /** NodePools whose types were recorded. */
  readonly #selling = new Set<string>()
  readonly #stopping = new AbortController()
  readonly #pods: PodLog
  readonly #shapes = new Map<string, Pod>()
  readonly #nodes = new Map<string, string>()
  #lastMs: number
  #running: Promise<void> = Promise.resolve()

  constructor(deps: RecorderDependencies, options: RecorderOptions) {
    this.#deps = deps
    this.#options = options
    const { redactor, resume = emptyTraceState() } = options
    this.#sink = redactor === undefined ? deps.sink : redactedSink(deps.sink, redactor)
    this.#pods = new PodLog(this.#sink, deps.clock, resume)
    for (const [name, { id }] of resume.nodes) this.#nodes.set(name, id)
    this.#lastMs = resume.atMs
  }

  /** Resolves once the caches have synced and the initial state is recorded. */
  async start(signal?: AbortSignal): Promise<void> {
    const { client, clock, logger, random } = this.#deps
    const sink = this.#sink
    const { program, source, catalogues, resume, readsPriorityClasses = true } = this.#options
    const atMs = clock.now()
    sink.write({ kind: 'session', atMs, program, source })
    if (resume !== undefined && resume.atMs > 0)
      sink.write({ kind: 'gap', atMs, fromMs: resume.atMs, because: 'nothing was recorded' })
    if (catalogues !== undefined) this.sells(catalogues)
    const registry = createCacheRegistry({ client: this.#noticingGaps(client), clock, logger, random })
    const pods = registry.cache<Pod>(kinds.pod, {
      gatherMs,
      transform: (pod, held) => this.#kept(pod, held),
    })
    const nodes = registry.cache<Node>(kinds.node, { gatherMs })
    const others: readonly Cache<KubeObject>[] = [
      registry.cache<NodePool>(karpenterKinds.nodePool, { isOptional: true }),
      registry.cache<DaemonSet>(kinds.daemonSet),
      registry.cache<PodDisruptionBudget>(kinds.podDisruptionBudget),
      ...(readsPriorityClasses ? [registry.cache<KubeObject>(priorityClassKind)] : []),
    ]
    registry.start(this.#stopping.signal)
    await registry.synced(signal)
    for (const cache of others) this.#followObjects(cache)
    this.#followNodes(nodes)
    this.#followPods(pods)
    await sink.flush()
    this.#running = this.#keepAlive()
  }

  /** Records the offerings of NodePools that had none before. */
  sells(catalogues: readonly SnapshotCatalogue[]): void {
    const fresh = catalogues.filter(
      ({ instanceTypes, nodePools }) =>
        instanceTypes !== undefined && nodePools.some((name) => !this.#selling.has(name)),
    )
    if (fresh.length === 0) return
    for (const { nodePools } of fresh) for (const name of nodePools) this.#selling.add(name)
    this.#sink.write({ kind: 'catalogue', atMs: this.#deps.clock.now(), catalogues: fresh })
  }

  /** Writes pending records and stops. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the recorder is stopping'))
    await this.#running
    this.#pods.settle(Number.POSITIVE_INFINITY)
    this.#sink.write({ kind: 'alive', atMs: this.#deps.clock.now() })
    await this.#sink.flush()
  }

  /**
   * Records a gap if a watch cannot be resumed: events may have been missed. Other lists only repeat what is
   * known.
   */
  #noticingGaps(client: WatchingKubeClient): WatchingKubeClient {
    let isGone = false
    const listed = (type: ResourceType): void => {
      if (type.plural !== kinds.pod.plural) return
      const atMs = this.#deps.clock.now()
      if (isGone) {
        const because = 'the API server no longer had the changes'
        this.#sink.write({ kind: 'gap', atMs, fromMs: this.#lastMs, because })
      }
      isGone = false
    }
    const noteGone = (type: ResourceType, error: unknown): void => {
      isGone ||= type.plural === kinds.pod.plural && isKubeError(error, 'gone')
    }
    async function* noting<R>(type: ResourceType, rows: AsyncIterable<R>): AsyncGenerator<R> {
      try {
        yield* rows
      } catch (error) {
        noteGone(type, error)
        throw error
      }
    }
    const watching: Pick<WatchingKubeClient, 'listing' | 'watch'> = {
      listing: (type, options, keep) => {
        listed(type)
        return client.listing(type, options, keep)
      },
      watch: async (type, options) => {
        if (options.sendInitialEvents === true) listed(type)
        try {
          return noting(type, await client.watch(type, options))
        } catch (error) {
          noteGone(type, error)
          throw error
        }
      },
    }
    // Only the methods that caches use; all others are the client's.
    return new Proxy(client, {
      get: (target, name) => {
        if (name === 'listing' || name === 'watch') return watching[name]
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }

  /** Keeps one copy per shape. */
  #kept(pod: Pod, before: Pod | undefined): Pod {
    this.#recordPriorityClass(pod)
    const { name, namespace, uid, creationTimestamp, deletionTimestamp } = pod.metadata
    const { phase, conditions } = pod.status ?? {}
    const shape =
      before?.metadata.uid === uid && before !== undefined ? undefined : this.#shared(shapeOf(pod))
    const target = conditions?.find(({ type, status }) => type === 'DisruptionTarget' && status === 'True')
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        ...(shape?.metadata ?? before?.metadata),
        name,
        ...(namespace !== undefined && { namespace }),
        ...(uid !== undefined && { uid }),
        ...(creationTimestamp !== undefined && { creationTimestamp }),
        ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      },
      spec: {
        ...(shape?.spec ?? before?.spec ?? { containers: [] }),
        ...(pod.spec.nodeName !== undefined && { nodeName: pod.spec.nodeName }),
      },
      status: { ...(phase !== undefined && { phase }), ...(target && { conditions: [target] }) },
    }
  }

  /** Records the class of a pod, as admission resolved it. */
  #recordPriorityClass({ spec: { priority, priorityClassName: name = '' } }: Pod): void {
    if (this.#options.readsPriorityClasses !== false) return
    if (name === '' || priority === undefined || this.#recordedClasses.has(name)) return
    this.#recordedClasses.add(name)
    const object = {
      apiVersion: `${priorityClassKind.group}/${priorityClassKind.version}`,
      kind: priorityClassKind.kind,
      metadata: { name },
      value: priority,
    }
    this.#sink.write({ kind: 'object', atMs: this.#deps.clock.now(), object })
  }

  /** Equal shapes share one object. */
  #shared(shape: Pod): Pod {
    const key = JSON.stringify(shape)
    const known = this.#shapes.get(key)
    if (known !== undefined) return known
    // Bounds memory: shapes of Jobs come and go, so old ones may be stored twice.
    if (this.#shapes.size >= 2_000) this.#shapes.clear()
    this.#shapes.set(key, shape)
    return shape
  }

  #followPods(cache: Cache<Pod>): void {
    this.#pods.begin(cache.list().filter((pod) => !isFinished(pod)))
    cache.onChange(({ kind, object }) => {
      this.#lastMs = this.#deps.clock.now()
      if (kind === 'deleted' || isFinished(object)) this.#pods.gone(object)
      else this.#pods.seen(object)
    })
  }

  #followNodes(cache: Cache<Node>): void {
    const { clock } = this.#deps
    const came = (node: Node): void => {
      const { uid = '', labels: nodeLabels = {}, creationTimestamp = '' } = node.metadata
      const name = this.#nodeName(node)
      const { allocatable = {}, capacity = {} } = node.status ?? {}
      // A node is recorded once its kubelet has reported and it has the labels of its NodePool.
      if (Object.keys(allocatable).length === 0 || isUnregistered(node)) return
      const id = digestOf(uid)
      if (this.#nodes.get(name) === id) return
      this.#nodes.set(name, id)
      const pricePerHour = this.#options.priceOf(node)
      const createdMs = Date.parse(creationTimestamp)
      this.#sink.write({
        kind: 'nodeCame',
        atMs: Number.isNaN(createdMs) ? clock.now() : createdMs,
        node: name,
        id,
        labels: nodeLabels,
        allocatable,
        capacity,
        ...(pricePerHour !== undefined && { pricePerHour }),
      })
    }
    const present = new Set(cache.list().map((node) => this.#nodeName(node)))
    for (const name of this.#nodes.keys()) if (!present.has(name)) this.#nodeGone(name)
    cache.onChange(({ kind, object }) => {
      this.#lastMs = clock.now()
      if (kind === 'deleted') this.#nodeGone(this.#nodeName(object))
      else came(object)
    })
  }

  /** The name as it is recorded. */
  #nodeName({ metadata: { name } }: Node): string {
    return this.#options.redactor?.name(name) ?? name
  }

  #nodeGone(name: string): void {
    if (!this.#nodes.delete(name)) return
    this.#sink.write({ kind: 'nodeGone', atMs: this.#deps.clock.now(), node: name })
  }

  #followObjects(cache: Cache<KubeObject>): void {
    const { clock } = this.#deps
    const sink = this.#sink
    const { group, version, kind } = cache.type
    const apiVersion = group === '' ? version : `${group}/${version}`
    const texts = new Map<string, string>()
    cache.onChange(({ kind: change, object }) => {
      const { name, namespace } = object.metadata
      const key = `${namespace ?? ''}/${name}`
      const atMs = clock.now()
      if (change === 'deleted') {
        texts.delete(key)
        const place = namespace === undefined ? {} : { namespace }
        sink.write({ kind: 'objectGone', atMs, apiVersion, objectKind: kind, ...place, name })
        return
      }
      const wanted = wantedOf(object, apiVersion, kind)
      const text = JSON.stringify(wanted)
      if (texts.get(key) === text) return
      texts.set(key, text)
      sink.write({ kind: 'object', atMs, object: wanted })
    })
  }

  async #keepAlive(): Promise<void> {
    const { clock, logger } = this.#deps
    const sink = this.#sink
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await clock.sleep(flushMs, signal).catch(() => undefined)
      this.#pods.settle(clock.now())
      sink.write({ kind: 'alive', atMs: clock.now() })
      this.#lastMs = clock.now()
      await sink.flush().catch((error: unknown) => {
        logger.error('writing the recording failed', { error })
      })
    }
  }
}

const priorityClassKind: ResourceType = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  namespaced: false,
}

/** A node of a NodePool lacks the labels for type and zone until it is registered. */
function isUnregistered({ metadata, spec }: Node): boolean {
  const nodeLabels = metadata.labels ?? {}
  const isOfPool = ownValue(nodeLabels, labels.nodePool) !== undefined
  return (
    (isOfPool && ownValue(nodeLabels, labels.registered) !== 'true') ||
    spec?.taints?.some(({ key }) => key === unregisteredTaint.key) === true
  )
}

function isFinished({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed'
}

/** Annotations that decisions read. Others may contain anything, such as a whole manifest with its environment. */
const readAnnotation = /^([a-z-]+\.)*(karpenter\.sh|tenon\.sh)\//
/** Annotations that the controller writes; that of a replay writes its own. */
const writtenAnnotations: ReadonlySet<string> = new Set([
  annotations.nodePoolHash,
  annotations.nodePoolHashVersion,
])

/** The object without server-side fields and fields that no decision reads. */
function wantedOf(object: KubeObject, apiVersion: string, kind: string): KubeObject {
  const { status: _status, metadata, ...rest } = object as KubeObject & { readonly status?: unknown }
  const { name, namespace, uid, generation, labels: own } = metadata
  const read = Object.entries(metadata.annotations ?? {}).filter(
    ([key]) => readAnnotation.test(key) && !writtenAnnotations.has(key),
  )
  return {
    ...rest,
    ...(kind === kinds.daemonSet.kind && trimmedTemplate(object as DaemonSet)),
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(generation !== undefined && { generation }),
      ...(own && { labels: own }),
      ...(read.length > 0 && { annotations: Object.fromEntries(read) }),
    },
  }
}

/** A DaemonSet with pods as they are recorded: without environment, commands and images. */
function trimmedTemplate({ spec }: DaemonSet): Pick<DaemonSet, 'spec'> {
  const { metadata, spec: pod } = spec.template
  return {
    spec: {
      ...spec,
      template: { ...(metadata && { metadata: withoutAnnotations(metadata) }), spec: specOf(pod) },
    },
  }
}

function withoutAnnotations<M extends { readonly annotations?: unknown }>(
  metadata: M,
): Omit<M, 'annotations'> {
  const { annotations: _annotations, ...rest } = metadata
  return rest
}
