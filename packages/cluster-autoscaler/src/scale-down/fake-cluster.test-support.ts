/**
 * A cluster and its cloud for tests of scale-down: objects in memory, faults on request, everything written down. It
 * stands in for what scale-down reads and writes; tests on the embedded API server are in test/world.
 */
import type { KubeObject, Node, Pod, PodDisruptionBudget } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { type GroupInstance, type NodeGroup, NodeGroupError } from '@tenon/provider'
import { eventLoopTurns, silentLogger, VirtualClock } from '@tenon/runtime'
import type { ClusterWriter, EventSink, MetricLabels, MetricSink } from '../model.ts'
import { type AutoscalerOptions, defaultOptions, type ScaleDownOptions } from '../options/options.ts'
import type { ClusterReader } from './deletion/cluster-reader.ts'
import type { DeletionResult } from './deletion/deletion-job.ts'
import type { ScaleDownInput, ScaleDownOutcome } from './outcome.ts'
import { ScaleDown } from './scale-down.ts'
import { aGroup, aView, minute, second, startMs } from './scale-down.test-support.ts'

export interface SeenEvent {
  readonly on: string
  readonly type: string
  readonly reason: string
  readonly message: string
}

export interface SeenEviction {
  readonly pod: string
  readonly graceSeconds: number
  /** Since the start. */
  readonly atMs: number
}

/** A pod is gone so long after its eviction, unless {@link FakeCluster.lingersMs} says otherwise. */
const usualEndMs = 2 * second

export class FakeCluster {
  readonly clock = new VirtualClock(startMs)
  readonly nodes = new Map<string, Node>()
  readonly pods = new Map<string, Pod>()
  budgets: PodDisruptionBudget[] = []
  readonly groups = new Map<string, NodeGroup>()
  readonly groupOf = new Map<string, string>()
  /** By node name: what the cloud says its member is. */
  readonly memberIds = new Map<string, string>()
  /** Whether the API server is that of the cluster that is known. */
  isKnown = true
  /** Names of pods that the caches do not show. */
  readonly unseen = new Set<string>()
  nodeWrites = 0
  /** Nodes whose writes the server refuses. */
  readonly unwritable = new Set<string>()
  /** Pods whose eviction the server refuses. */
  readonly unevictable = new Set<string>()
  /** Pods that end so long after their eviction. */
  readonly lingersMs = new Map<string, number>()
  /** What the cloud answers to deletions; undefined = it does them. */
  cloudFailure: string | undefined
  /** Whether the cloud removes members before it answers {@link cloudFailure}. */
  failsAfterEffect = false
  /** Set if the cloud writes IDs otherwise than kubelets do. */
  instanceIdOf: ((providerId: string) => string) | undefined
  /** How long a deletion takes at the cloud. */
  cloudMs = second
  readonly events: SeenEvent[] = []
  readonly evictions: SeenEviction[] = []
  /** Names of nodes in each call. */
  readonly cloudCalls: string[][] = []
  /** Called for each member that the cloud removes. */
  onRemoved: (nodeName: string) => void = () => {}
  readonly ended: DeletionResult[] = []
  readonly figures = new Map<string, number>()
  readonly #gone = new Set<string>()

  add(...objects: readonly (Node | Pod)[]): this {
    for (const object of objects) {
      const { name } = object.metadata
      if (object.kind === 'Node') {
        this.nodes.set(name, object as Node)
        if (!this.groupOf.has(name)) this.groupOf.set(name, 'g')
      } else this.pods.set(name, object as Pod)
    }
    return this
  }

  /** Absent = one group `g` as large as the nodes are, with a minimum of 0. */
  withGroups(...groups: readonly NodeGroup[]): this {
    for (const group of groups) this.groups.set(group.id, group)
    return this
  }

  scaleDown(options: Partial<ScaleDownOptions> = {}, others: Partial<AutoscalerOptions> = {}): ScaleDown {
    if (this.groups.size === 0) this.groups.set('g', aGroup('g', this.nodes.size, 0))
    return new ScaleDown({
      options: {
        ...defaultOptions,
        ...others,
        scaleDown: { ...defaultOptions.scaleDown, unneededTimeMs: 0, unreadyTimeMs: 0, ...options },
      },
      nodeGroups: {
        deleteInstances: (groupId, providerIds) => this.#deleteInstances(groupId, providerIds),
        groupOf: async (node) => {
          const groupId = this.groupOf.get(node.metadata.name)
          const providerId = this.memberIds.get(node.metadata.name)
          return await Promise.resolve(
            groupId === undefined
              ? { kind: 'none' }
              : { kind: 'group', groupId, ...(providerId !== undefined && { providerId }) },
          )
        },
        instances: async (groupId) => await Promise.resolve(this.#instances(groupId)),
      },
      cluster: { reader: this.#reader, writer: this.#writer, mayRemove: () => Promise.resolve(this.isKnown) },
      reporting: { events: this.#events, metrics: this.#metrics, logger: silentLogger },
      slicing: { clock: this.clock, turns: eventLoopTurns, sliceMs: 8 },
      ended: (result) => this.ended.push(result),
    })
  }

  /** One loop over the objects as they are. */
  async loop(
    scaleDown: ScaleDown,
    input: Partial<ScaleDownInput> = {},
    signal: AbortSignal = new AbortController().signal,
  ): Promise<ScaleDownOutcome> {
    const nodes = [...this.nodes.values()]
    const view = aView({
      nodes,
      pods: [...this.pods.values()].filter(({ metadata }) => !this.unseen.has(metadata.name)),
      budgets: this.budgets,
      groups: [...this.groups.values()],
      groupOf: this.groupOf,
      atMs: this.clock.now(),
    })
    return await scaleDown.update(
      {
        view,
        candidates: nodes,
        isForbidden: false,
        lastScaleUpMs: undefined,
        lastScaleUpMsByGroup: new Map(),
        ...input,
      },
      signal,
    )
  }

  /** Events with a reason, as `object: message`. */
  eventsOf(reason: string): readonly string[] {
    return this.events.filter((each) => each.reason === reason).map(({ on, message }) => `${on}: ${message}`)
  }

  taintKeys(nodeName: string): readonly string[] {
    return (this.nodes.get(nodeName)?.spec?.taints ?? []).map(({ key }) => key)
  }

  readonly #writer: ClusterWriter = {
    nominate: () => Promise.reject(new Error('scale-down nominates no pod')),
    writeQuotaStatus: () => Promise.reject(new Error('scale-down writes no quota')),
    writeRequestConditions: () => Promise.reject(new Error('scale-down writes no request')),
    deleteRequest: () => Promise.reject(new Error('scale-down deletes no request')),
    updateNode: async (name, change) => {
      await this.clock.sleep(10)
      const node = this.nodes.get(name)
      const wanted = node && change(node)
      if (wanted === undefined) return node
      if (this.unwritable.has(name)) throw new KubeError('server', 500, `node ${name} cannot be written`)
      this.nodes.set(name, wanted)
      this.nodeWrites++
      return wanted
    },
    evict: async (pod, graceSeconds) => {
      const { name } = pod.metadata
      this.evictions.push({ pod: name, graceSeconds, atMs: this.clock.now() - startMs })
      await Promise.resolve()
      if (this.unevictable.has(name)) throw new KubeError('tooManyRequests', 429, 'the budget lets none go')
      this.clock.after(this.lingersMs.get(name) ?? usualEndMs, () => {
        if (this.pods.get(name)?.metadata.uid === pod.metadata.uid) this.pods.delete(name)
      })
    },
  }

  readonly #reader: ClusterReader = {
    node: async (name) => await Promise.resolve(this.nodes.get(name)),
    podsOf: async (nodeName) =>
      await Promise.resolve([...this.pods.values()].filter((pod) => pod.spec.nodeName === nodeName)),
    disruptionBudgets: async () => await Promise.resolve(this.budgets),
    controllerOf: () => ({ replicas: 1 }),
    cachedNode: (name) => this.nodes.get(name),
  }

  readonly #events: EventSink = {
    status: (type, reason, message) => this.events.push({ on: 'status', type, reason, message }),
    object: (object: KubeObject, type, reason, message) =>
      this.events.push({ on: object.metadata.name, type, reason, message }),
  }

  readonly #metrics: MetricSink = {
    set: (name, value, labels) => this.figures.set(keyOf(name, labels), value),
    clear: (name) => {
      for (const key of this.figures.keys()) if (key.startsWith(`${name}{`)) this.figures.delete(key)
    },
    add: (name, by, labels) => {
      const key = keyOf(name, labels)
      this.figures.set(key, (this.figures.get(key) ?? 0) + by)
    },
    observe: (name, value, labels) => this.figures.set(keyOf(name, labels), value),
  }

  async #deleteInstances(groupId: string, providerIds: readonly string[]): Promise<void> {
    this.cloudCalls.push(providerIds.map((id) => id.replace('exoscale://', '')))
    await this.clock.sleep(this.cloudMs)
    const failure = this.cloudFailure
    if (failure === undefined || this.failsAfterEffect) {
      for (const id of providerIds) {
        this.#gone.add(id)
        this.onRemoved(id.replace('exoscale://', ''))
      }
      const group = this.groups.get(groupId)
      if (group !== undefined) {
        this.groups.set(groupId, { ...group, targetSize: group.targetSize - providerIds.length })
      }
    }
    if (failure !== undefined) throw new NodeGroupError(failure)
  }

  #instances(groupId: string): readonly GroupInstance[] {
    return [...this.nodes.values()]
      .filter(({ metadata }) => this.groupOf.get(metadata.name) === groupId)
      .filter(({ spec }) => !this.#gone.has(spec?.providerID ?? ''))
      .map(({ metadata, spec }) => {
        const providerId = spec?.providerID ?? ''
        if (this.instanceIdOf === undefined) return { providerId, state: 'running' }
        return { providerId: this.instanceIdOf(providerId), nodeName: metadata.name, state: 'running' }
      })
  }
}

/** `name{a=1,b=2}` */
function keyOf(name: string, labels: MetricLabels = {}): string {
  const pairs = Object.entries(labels).map((pair) => pair.join('='))
  return `${name}{${pairs.join()}}`
}

/** Lets time pass on a cluster's clock until work is done. */
export async function during<T>(cluster: FakeCluster, work: Promise<T>): Promise<T> {
  let isDone = false
  const done = work.finally(() => {
    isDone = true
  })
  // Reported by `await done`; this keeps it from being taken for a rejection that nobody handles.
  done.catch(() => undefined)
  await cluster.clock.advanceUntil(() => isDone, 60 * minute)
  return await done
}
