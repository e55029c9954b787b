/** A simulated Clever Kubernetes Engine: the platform behind the NodeGroups of one cluster. */
import type { CloudSimulator, DevCluster, SimulatorParts } from '@tenon/devcluster'
import type { SimulatedInstance } from '@tenon/provider'
import { integerBetween, type Transport } from '@tenon/runtime'
import { type ControlPlane, outside, startControlPlane } from './control-plane.ts'
import { Faults } from './faults.ts'
import { GroupKeeper } from './group-keeper.ts'
import { type Decision, type GroupRecord, stayingInstances } from './group-record.ts'
import { resize, vanish } from './late-effects.ts'
import { InstanceHost } from './group-instances.ts'
import { groupOf, type Platform, usedQuota } from './platform.ts'
import { installNodeGroupKind } from './platform-crd.ts'
import { pricePerHour } from './prices.ts'
import { type RecordedCall, Requests } from './requests.ts'
import { type CleverCloudSettings, defaultSettings, type QuotaAmount } from './settings.ts'

export interface CleverCloudOptions {
  readonly settings?: Partial<CleverCloudSettings>
  /** Default: outside the cluster. */
  readonly controlPlane?: ControlPlane
}

/** A NodeGroup as its platform operator sees it. */
export interface GroupSnapshot {
  readonly name: string
  readonly uid: string
  readonly flavor: string
  readonly decision: Decision['kind']
  readonly phase: string | undefined
  readonly isReady: boolean
  readonly isEnding: boolean
  /** The requested number; undefined if the object is gone. */
  readonly nodesWanted: number | undefined
  /** Names of nodes whose instances are not being removed. */
  readonly nodes: readonly string[]
}

export interface CleverCloud {
  /** May be changed at any time. */
  readonly settings: CleverCloudSettings
  readonly faults: Faults
  /** In the order of their creation. */
  groups(): readonly GroupSnapshot[]
  /** Billed workers, in the order of their groups. */
  instances(): readonly SimulatedInstance[]
  /** The organisation's quota and its use, including the control plane and leaked reservations. */
  quota(): { readonly used: QuotaAmount; readonly limit: QuotaAmount }
  /** Requests that passed {@link through}, oldest first; at least the last 10 000. */
  calls(): readonly RecordedCall[]
  /** The API server with simulated faults of requests. */
  through(server: Transport): Transport
  /** A user changes the number of nodes of a group. */
  resize(group: string, nodeCount: number): void
  /** The platform removes a group and its object without a reason. */
  vanish(group: string): void
  /** Ends every timer and kubelet. */
  stop(): void
}

/** An embedded cluster at a simulated Clever Cloud. */
export type CleverCloudCluster = DevCluster<CleverCloud>

export function cleverCloudSimulator(options: CleverCloudOptions = {}): CloudSimulator<CleverCloud> {
  return {
    prepare: installNodeGroupKind,
    start: (parts) => startCleverCloud(parts, options),
  }
}

/** Starts the platform of a cluster, and continues with the state of an earlier run. */
export function startCleverCloud(parts: SimulatorParts, options: CleverCloudOptions = {}): CleverCloud {
  const { clock, logger } = parts.runtime
  const { controlPlane = outside } = options
  const random = parts.runtime.random.fork('clever-cloud')
  const api = parts.api.as('clever-cloud-operator')
  const settings = { ...defaultSettings(), ...options.settings }
  const faults = new Faults(random.fork('faults'))
  const host = new InstanceHost({
    api,
    kubelets: parts.nodes.kubelets,
    random: random.fork('machines'),
    kubernetesVersion: parts.api.version,
  })
  const platform: Platform = {
    api,
    userApi: parts.api.as('kubectl'),
    clock,
    random: random.fork('groups'),
    logger,
    settings,
    faults,
    host,
    controlPlane: controlPlane.counts,
    records: new Map(),
    leaks: [],
  }
  installNodeGroupKind(api)
  const requests = new Requests(faults, clock)
  const keeper = new GroupKeeper(platform)
  const ownAutoscaler = new OwnAutoscaler(platform)
  const stopControlPlane = startControlPlane(host, controlPlane.nodes)
  keeper.start()
  ownAutoscaler.start()
  return {
    settings,
    faults,
    groups: () => [...platform.records.values()].map((record) => snapshotOf(platform, record)),
    instances: () => [...platform.records.values()].flatMap(instancesOf),
    quota: () => ({ used: usedQuota(platform), limit: settings.quota }),
    calls: () => requests.calls(),
    through: (server) => requests.through(server),
    resize: (group, nodeCount) => resize(platform, group, nodeCount),
    vanish: (group) => vanish(platform, group),
    stop() {
      ownAutoscaler.stop()
      keeper.stop()
      stopControlPlane()
    },
  }
}

function snapshotOf(platform: Platform, record: GroupRecord): GroupSnapshot {
  const group = groupOf(platform, record)
  return {
    name: record.name,
    uid: record.uid,
    flavor: record.flavor.name,
    decision: record.decision.kind,
    phase: group?.status?.phase,
    isReady: record.isSynced,
    isEnding: group?.metadata.deletionTimestamp !== undefined,
    nodesWanted: group?.spec.nodeCount,
    nodes: stayingInstances(record).map(({ nodeName }) => nodeName),
  }
}

function instancesOf({ flavor, instances }: GroupRecord): readonly SimulatedInstance[] {
  const price = pricePerHour(flavor.name)
  return [...instances.values()].map(({ nodeName }) => ({ name: nodeName, pricePerHour: price }))
}

const pauseWhileOffMs = 30_000

/** Changes the size of random groups from time to time. */
class OwnAutoscaler {
  readonly #platform: Platform
  #cancel: (() => void) | undefined

  constructor(platform: Platform) {
    this.#platform = platform
  }

  start(): void {
    const { clock, settings } = this.#platform
    this.#cancel = clock.after(settings.ownAutoscaler?.periodMs ?? pauseWhileOffMs, () => {
      this.#resizeOne()
      this.start()
    })
  }

  stop(): void {
    this.#cancel?.()
  }

  #resizeOne(): void {
    const { random, records, settings } = this.#platform
    const ready = [...records.values()].filter(({ isSynced, end }) => isSynced && end === undefined)
    if (settings.ownAutoscaler === undefined || ready.length === 0) return
    const group = ready[integerBetween(random, 0, ready.length - 1)]
    const nodeCount = integerBetween(random, 1, settings.ownAutoscaler.mostNodes)
    if (group !== undefined) resize(this.#platform, group.name, nodeCount)
  }
}
