/**
 * A cluster in memory with node groups that become nodes, and the loop on it, on virtual time. It stands in for what the
 * loop reads and writes; tests on the embedded API server are in test/world.
 */
import type {
  CapacityQuota,
  ConfigMap,
  DaemonSet,
  Node,
  Pod,
  PodDisruptionBudget,
  PodTemplate,
  ProvisioningRequest,
  SelectorLookups,
} from '@tenon/api'
import { VolumeIndex } from '@tenon/filters'
import type { NodeGroup } from '@tenon/provider'
import { eventLoopTurns, SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import type { Autoscaler } from '../loop/autoscaler.ts'
import { createAutoscaler } from '../loop/create-autoscaler.ts'
import { Explanations } from '../status/explanations.ts'
import type { LoopOutcome } from '../loop/outcome.ts'
import type { ClusterWriter, ClusterCache, DeviceObjects, PodController, RequestObjects } from '../model.ts'
import { type AutoscalerOptions, defaultOptions } from '../options/options.ts'
import type { ClusterReader } from '../scale-down/deletion/cluster-reader.ts'
import type { StatusReport } from '../status/status-report.ts'
import { FakeGroups } from './fake-groups.test-support.ts'
import { startMs } from './objects.test-support.ts'
import { KeptEvents, KeptMetrics } from './sinks.test-support.ts'

export interface ClusterScene {
  readonly groups: readonly NodeGroup[]
  /** Nodes by group id; those under an empty id are in no group. */
  readonly nodes: Readonly<Record<string, readonly Node[]>>
  readonly pods?: readonly Pod[]
  readonly options?: { readonly [part in keyof AutoscalerOptions]?: Partial<AutoscalerOptions[part]> }
}

export class FakeCluster {
  readonly clock = new VirtualClock(startMs)
  readonly cloud: FakeGroups
  readonly events = new KeptEvents()
  readonly metrics = new KeptMetrics()
  readonly reports: StatusReport[] = []
  readonly explanations = new Explanations()
  readonly nodes = new Map<string, Node>()
  readonly pods = new Map<string, Pod>()
  readonly evicted: string[] = []
  /** `pod node`, in the order in which it was asked for. */
  readonly nominated: string[] = []
  nominationError: Error | undefined
  /** Messages of warnings. */
  readonly warnings: string[] = []
  daemonSets: readonly DaemonSet[] = []
  applications: SelectorLookups | undefined
  disruptionBudgets: readonly PodDisruptionBudget[] = []
  /** By name; written and read as an API server would. */
  readonly requests = new Map<string, ProvisioningRequest>()
  /** By name. */
  readonly quotas = new Map<string, CapacityQuota>()
  /** By name. */
  readonly podTemplates = new Map<string, PodTemplate>()
  /** What the caches have of the requests; as it is while undefined. */
  cachedRequests: readonly ProvisioningRequest[] | undefined
  /** Called before a request is written; what it throws is the answer. */
  beforeWrite: (() => void) | undefined
  configMaps = new Map<string, ConfigMap>()
  readonly volumes = new VolumeIndex()
  devices: DeviceObjects | undefined
  /** By `Kind namespace/name`; others have as many replicas as anybody wants. */
  readonly controllers = new Map<string, PodController | undefined>()
  readonly autoscaler: Autoscaler
  readonly #stopping = new AbortController()

  constructor({ groups, nodes, pods = [], options = {} }: ClusterScene) {
    this.cloud = new FakeGroups(groups)
    for (const [groupId, list] of Object.entries(nodes)) for (const node of list) this.addNode(node, groupId)
    for (const pod of pods) this.addPod(pod)
    const merged = Object.fromEntries(
      Object.entries(defaultOptions).map(([part, defaults]) => {
        const own = options[part as keyof AutoscalerOptions]
        return [part, typeof defaults === 'object' ? { ...defaults, ...(own as object) } : (own ?? defaults)]
      }),
    ) as AutoscalerOptions
    this.autoscaler = createAutoscaler({
      options: merged,
      cluster: {
        cache: new FakeCache(this),
        reader: this.#reader(),
        listNodes: () => Promise.resolve([...this.nodes.values()]),
        mayRemove: () => Promise.resolve(true),
        writer: this.#writer(),
      },
      nodeGroups: this.cloud,
      reporting: {
        events: this.events,
        metrics: this.metrics,
        logger: { ...silentLogger, warn: (message) => this.warnings.push(message) },
        status: {
          write: (report) => {
            this.reports.push(report)
            return Promise.resolve()
          },
        },
        health: { noteActivity: () => undefined, noteSuccess: () => undefined },
        debugging: {
          snapshotz: { isWanted: false, provide: () => undefined, fail: () => undefined },
          explanations: this.explanations,
        },
      },
      capabilities: { clock: this.clock, turns: eventLoopTurns, random: new SeededRandom('loop') },
      grpcExpander: (all) => Promise.resolve(all),
    })
  }

  addNode(node: Node, groupId: string): void {
    this.nodes.set(node.metadata.name, node)
    if (groupId === '') return
    this.cloud.groupOfNode.set(node.metadata.name, groupId)
    this.#setMembers(groupId, [...this.#members(groupId), node.spec?.providerID ?? ''])
  }

  addPod(pod: Pod): void {
    this.pods.set(pod.metadata.name, pod)
  }

  /** One iteration, and all that it begins for as long as time stands still. */
  async loop(): Promise<LoopOutcome> {
    const outcome = await this.autoscaler.runOnce(this.#stopping.signal)
    await this.clock.advance(0)
    return outcome
  }

  /** Nodes or pods have changed, and time passes. */
  async look(ms = 0): Promise<void> {
    this.autoscaler.noteChange(this.#stopping.signal)
    await this.clock.advance(ms)
  }

  /** Iterations every ten seconds for so long. */
  async loopFor(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 10_000) {
      await this.clock.advance(10_000)
      await this.loop()
    }
  }

  size(groupId: string): number | undefined {
    return this.cloud.group(groupId)?.targetSize
  }

  #members(groupId: string): readonly string[] {
    return (this.cloud.members.get(groupId) ?? []).map(({ providerId }) => providerId)
  }

  #setMembers(groupId: string, ids: readonly string[]): void {
    this.cloud.members.set(
      groupId,
      ids.map((providerId) => ({ providerId, state: 'running' })),
    )
  }

  controllerOf(kind: string, namespace: string, name: string): PodController | undefined {
    const key = `${kind} ${namespace}/${name}`
    return this.controllers.has(key) ? this.controllers.get(key) : { replicas: 100 }
  }

  #reader(): ClusterReader {
    return {
      node: (name) => Promise.resolve(this.nodes.get(name)),
      podsOf: (name) => Promise.resolve([...this.pods.values()].filter(({ spec }) => spec.nodeName === name)),
      disruptionBudgets: () => Promise.resolve(this.disruptionBudgets),
      controllerOf: (kind, namespace, name) => this.controllerOf(kind, namespace, name),
      cachedNode: (name) => this.nodes.get(name),
    }
  }

  #writer(): ClusterWriter {
    return {
      updateNode: (name, change) => {
        const node = this.nodes.get(name)
        const changed = node && change(node)
        if (changed !== undefined) this.nodes.set(name, changed)
        return Promise.resolve(changed ?? node)
      },
      nominate: async ({ metadata: { name } }, node) => {
        this.nominated.push(`${name} ${node}`)
        if (this.nominationError !== undefined) throw this.nominationError
        const pod = this.pods.get(name)
        if (pod !== undefined)
          this.pods.set(name, { ...pod, status: { ...pod.status, nominatedNodeName: node } })
        await Promise.resolve()
      },
      writeRequestConditions: async (request) => {
        this.beforeWrite?.()
        const { name, resourceVersion, uid } = request.metadata
        const now = this.requests.get(name)
        if (now === undefined || now.metadata.uid !== uid) return undefined
        if (now.metadata.resourceVersion !== resourceVersion) return undefined
        const version = `${Number(resourceVersion) + 1}`
        const written = { ...request, metadata: { ...request.metadata, resourceVersion: version } }
        this.requests.set(name, written)
        return await Promise.resolve(written)
      },
      writeQuotaStatus: async (quota) => {
        this.quotas.set(quota.metadata.name, quota)
        await Promise.resolve()
      },
      deleteRequest: async ({ metadata: { name } }) => {
        this.beforeWrite?.()
        this.requests.delete(name)
        await Promise.resolve()
      },
      evict: ({ metadata: { name } }) => {
        this.evicted.push(name)
        this.pods.delete(name)
        return Promise.resolve()
      },
    }
  }
}

class FakeCache implements ClusterCache {
  readonly #cluster: FakeCluster

  constructor(cluster: FakeCluster) {
    this.#cluster = cluster
  }

  readonly nodes = (): readonly Node[] => [...this.#cluster.nodes.values()]
  readonly pods = (): readonly Pod[] => [...this.#cluster.pods.values()]
  readonly namespaces = () => new Map([['default', {}]])
  readonly volumes = () => this.#cluster.volumes
  readonly devices = () => this.#cluster.devices
  readonly configMap = (namespace: string, name: string) =>
    this.#cluster.configMaps.get(`${namespace}/${name}`)
  readonly controllerOf = (kind: string, namespace: string, name: string) =>
    this.#cluster.controllerOf(kind, namespace, name)

  get requests(): RequestObjects {
    return {
      list: () => this.#cluster.cachedRequests ?? [...this.#cluster.requests.values()],
      template: (_, name) => this.#cluster.podTemplates.get(name),
    }
  }

  get quotas(): readonly CapacityQuota[] {
    return [...this.#cluster.quotas.values()]
  }

  get disruptionBudgets(): readonly PodDisruptionBudget[] {
    return this.#cluster.disruptionBudgets
  }

  readonly deviceUse = new Map()

  get applications(): SelectorLookups | undefined {
    return this.#cluster.applications
  }

  get daemonSets(): readonly DaemonSet[] {
    return this.#cluster.daemonSets
  }
}
