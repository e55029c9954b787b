/**
 * A simulated Cluster API: its controllers on a hub, and an infrastructure whose machines join one cluster.
 */
import { isDeepStrictEqual } from 'node:util'
import { kinds as coreKinds, type KubeObject, type Node, ownValue, type ResourceType } from '@tenon/api'
import { ApiError, type LocalApi, ReconcileLoop, type SimulatorParts } from '@tenon/devcluster'
import type { SimulatedInstance } from '@tenon/provider'
import { defaultGroup, namesOf, type ServedVersion } from '@tenon/provider-cluster-api'
import { installKinds } from './crds.ts'
import { reconcileDeployment } from './deployments/deployment-controller.ts'
import { Faults } from './faults.ts'
import { awayMs, type HubParts } from './hub-parts.ts'
import {
  type FullDeployment,
  type FullMachine,
  type InfrastructureTemplate,
  type SimulatedKinds,
  simulatedKinds,
} from './kinds.ts'
import { reconcileHealthCheck } from './health-checks/health-check-controller.ts'
import { reconcilePool } from './machine-pools/pool-controller.ts'
import type { MachineRecord } from './machines/machine-record.ts'
import { reconcileTopology } from './topology/topology-controller.ts'
import { reconcileSet } from './machine-sets/set-controller.ts'
import { Infrastructure } from './machines/infrastructure.ts'
import { type MachineParts, reconcileMachine } from './machines/machine-controller.ts'
import { MachineRoom } from './machines/machine-room.ts'
import { NodeIndex } from './machines/node-index.ts'
import { type ClusterApiSettings, defaultSettings, type DelayRange, drawDelay } from './settings.ts'

export interface ClusterApiOptions {
  readonly settings?: Partial<ClusterApiSettings>
  /** API server of a separate hub; default: the workload cluster is its own hub. */
  readonly hub?: { readonly localAs: (user: string) => LocalApi }
  /**
   * The only version that the hub serves, as the embedded API server has no conversion. Default: `v1beta2`.
   */
  readonly version?: ServedVersion
}

export interface ClusterApi {
  /** May be changed at any time. */
  readonly settings: ClusterApiSettings
  readonly faults: Faults
  /** The kinds of the hub. */
  readonly kinds: SimulatedKinds
  /** The hub's API with the identity of users. */
  readonly hub: LocalApi
  /** Billed Machines, in the order of their creation. */
  instances(): readonly SimulatedInstance[]
  /** The machine is lost, and its Machine has failed; returns whether there was one. */
  lose(namespace: string, name: string): boolean
  /** Ends every timer and kubelet. */
  stop(): void
}

/** Starts Cluster API for a workload cluster, and continues with the state of an earlier run. */
export function startClusterApi(parts: SimulatorParts, options: ClusterApiOptions = {}): ClusterApi {
  const kinds = simulatedKinds(defaultGroup, options.version ?? 'v1beta2')
  const hubAs = options.hub?.localAs ?? parts.api.as
  installKinds(hubAs('kubectl'), kinds)
  const settings = { ...defaultSettings(), ...options.settings }
  const manager = new Manager(parts, hubAs, kinds, settings)
  manager.start()
  const { hub, infrastructure, faults } = manager
  return {
    settings: hub.settings,
    faults,
    kinds,
    hub: hubAs('kubectl'),
    instances: () =>
      infrastructure
        .records()
        .filter(({ isLost, providerId }) => providerId !== undefined && !isLost)
        .map(({ type, namespace, name }) => {
          const machine = hub.api.get(type, namespace, name)
          return { name, pricePerHour: machine && infrastructure.room.priceOf(machine) }
        }),
    lose(namespace, name) {
      const record = infrastructure
        .records()
        .find((each) => each.namespace === namespace && each.name === name)
      if (record?.providerId === undefined || record.isLost) return false
      infrastructure.lose(record)
      manager.hearRecord(record)
      return true
    },
    stop: () => manager.stop(),
  }
}

/** Enqueues an object for its controller. */
type Hear = (namespace: string | undefined, name: string) => void

/** One pass over one object. Returns in how many milliseconds the next is due, without an event. */
type Pass = (namespace: string, name: string) => number | undefined

/** All controllers and their watches. */
class Manager {
  readonly hub: HubParts
  readonly faults: Faults
  readonly infrastructure: Infrastructure
  readonly #workload: LocalApi
  readonly #nodes = new NodeIndex()
  readonly #loop: ReconcileLoop
  readonly #hearDeployment: Hear
  readonly #hearSet: Hear
  readonly #hearMachine: Hear
  readonly #hearPoolInstance: Hear
  readonly #hearPool: Hear
  readonly #hearHealthCheck: Hear
  readonly #hearTopology: Hear
  readonly #subscriptions: (() => void)[] = []

  constructor(
    { api: workload, nodes, runtime }: SimulatorParts,
    hubAs: (user: string) => LocalApi,
    kinds: SimulatedKinds,
    settings: ClusterApiSettings,
  ) {
    const api = hubAs('capi-controller-manager')
    const topology = hubAs('capi-topology')
    const { clock, logger } = runtime
    const random = runtime.random.fork('cluster-api')
    const names = namesOf(defaultGroup)
    this.#workload = workload.as('capi-controller-manager')
    this.hub = { api, runtime: { clock, random: random.fork('objects'), logger }, settings, names, kinds }
    this.faults = new Faults(random.fork('faults'), names.deploymentName)
    const room = new MachineRoom(this.hub, {
      workload: this.#workload,
      kubelets: nodes.kubelets,
      random: random.fork('machines'),
      kubernetesVersion: workload.version,
    })
    this.infrastructure = new Infrastructure(this.hub, this.faults, room)
    const machineParts: MachineParts = {
      hub: this.hub,
      workload: this.#workload,
      infrastructure: this.infrastructure,
      nodes: this.#nodes,
    }
    this.#loop = new ReconcileLoop(clock, logger)
    const delays = random.fork('delays')
    const controller = (kind: string, delay: () => DelayRange, pass: Pass): Hear => {
      const queue = this.#loop.queue(kind, (key) => {
        const [namespace = '', name = ''] = key.split('/')
        const afterMs = pass(namespace, name)
        return afterMs === undefined ? undefined : { afterMs }
      })
      return (namespace = '', name) => queue.addAfter(`${namespace}/${name}`, drawDelay(delays, delay()))
    }
    const unlessAway =
      (pass: Pass): Pass =>
      (namespace, name) =>
        settings.isCoreAway ? awayMs : pass(namespace, name)
    this.#hearDeployment = controller(
      'MachineDeployment',
      () => settings.deploymentDelay,
      unlessAway((namespace, name) => reconcileDeployment(this.hub, namespace, name)),
    )
    this.#hearSet = controller(
      'MachineSet',
      () => settings.controllerDelay,
      unlessAway((namespace, name) => reconcileSet(this.hub, namespace, name)),
    )
    this.#hearMachine = controller(
      'Machine',
      () => settings.controllerDelay,
      (namespace, name) => reconcileMachine(machineParts, kinds.machine, namespace, name),
    )
    this.#hearPoolInstance = controller(
      'SimulatedPoolInstance',
      () => settings.controllerDelay,
      (namespace, name) => reconcileMachine(machineParts, kinds.poolInstance, namespace, name),
    )
    this.#hearPool = controller(
      'MachinePool',
      () => settings.deploymentDelay,
      unlessAway((namespace, name) => reconcilePool(this.hub, namespace, name)),
    )
    this.#hearHealthCheck = controller(
      'MachineHealthCheck',
      () => settings.controllerDelay,
      unlessAway((namespace, name) => reconcileHealthCheck(this.hub, this.#workload, namespace, name)),
    )
    this.#hearTopology = controller(
      'topology',
      () => settings.topologyDelay,
      unlessAway((namespace, name) => reconcileTopology(this.hub, topology, namespace, name)),
    )
  }

  start(): void {
    const { api, kinds } = this.hub
    // All of them count against the capacity before any new machine is created.
    for (const type of [kinds.machine, kinds.poolInstance])
      for (const machine of api.list(type)) this.infrastructure.meet(type, machine)
    this.#removeLostNodes()
    this.#subscriptions.push(
      api.subscribe(kinds.template, {
        added: (template) => this.#attempt(() => reportCapacity(this.hub, template)),
        updated: (template) => this.#attempt(() => reportCapacity(this.hub, template)),
      }),
      api.subscribe(kinds.cluster, {
        added: ({ metadata }) => this.#hearAll(metadata.namespace ?? ''),
        updated: ({ metadata }) => this.#hearAll(metadata.namespace ?? ''),
      }),
      api.subscribe(kinds.deployment, {
        added: (deployment) => this.#hearDeploymentAndTopology(deployment),
        updated: (deployment, old) => {
          this.#hearDeploymentAndTopology(deployment)
          if (deployment.metadata.generation !== old.metadata.generation) this.#hearMachinesOf(deployment)
        },
      }),
      this.#follow(kinds.set, (set) => {
        this.#hearSet(set.metadata.namespace, set.metadata.name)
        this.#hearOwners(set)
      }),
      api.subscribe(kinds.machine, {
        added: (machine) => this.#hearWithOwners(machine),
        updated: (machine) => this.#hearWithOwners(machine),
        deleted: (machine) => this.#bury(machine),
      }),
      this.#follow(kinds.pool, ({ metadata }) => this.#hearPool(metadata.namespace, metadata.name)),
      api.subscribe(kinds.poolInstance, {
        added: (instance) => this.#hearPoolInstanceWithOwner(instance),
        updated: (instance) => this.#hearPoolInstanceWithOwner(instance),
        deleted: (instance) => this.#bury(instance),
      }),
      this.#follow(kinds.healthCheck, ({ metadata }) =>
        this.#hearHealthCheck(metadata.namespace, metadata.name),
      ),
      this.#workload.subscribe(coreKinds.node, {
        added: (node) => this.#seeNode(node),
        updated: (node, old) => {
          this.#nodes.remove(old)
          this.#seeNode(node)
        },
        deleted: (node) => {
          this.#nodes.remove(node)
          this.#hearNode(node)
        },
      }),
    )
  }

  stop(): void {
    for (const end of this.#subscriptions) end()
    this.#loop.stop()
    for (const record of this.infrastructure.records()) this.infrastructure.room.cut(record)
  }

  hearRecord({ type, namespace, name }: MachineRecord): void {
    if (type === this.hub.kinds.machine) this.#hearMachine(namespace, name)
    else this.#hearPoolInstance(namespace, name)
  }

  #follow(type: ResourceType, hear: (object: KubeObject) => void): () => void {
    return this.hub.api.subscribe(type, { added: hear, updated: hear, deleted: hear })
  }

  #hearDeploymentAndTopology({ metadata }: FullDeployment): void {
    this.#hearDeployment(metadata.namespace, metadata.name)
    const label = `topology.${this.hub.names.group}/deployment-name`
    if (ownValue(metadata.labels, label) !== undefined) this.#hearTopology(metadata.namespace, metadata.name)
  }

  #hearWithOwners(machine: FullMachine): void {
    this.#hearMachine(machine.metadata.namespace, machine.metadata.name)
    this.#hearOwners(machine)
    this.#hearHealthChecks(machine.metadata.namespace)
  }

  #hearPoolInstanceWithOwner(instance: FullMachine): void {
    this.#hearPoolInstance(instance.metadata.namespace, instance.metadata.name)
    this.#hearOwners(instance)
  }

  #hearHealthChecks(namespace = ''): void {
    const { api, kinds } = this.hub
    for (const { metadata } of api.list(kinds.healthCheck, { namespace }))
      this.#hearHealthCheck(namespace, metadata.name)
  }

  #hearOwners({ metadata }: KubeObject): void {
    const { labels, namespace, ownerReferences = [] } = metadata
    const deployment = ownValue(labels, this.hub.names.deploymentName)
    if (deployment !== undefined) this.#hearDeployment(namespace, deployment)
    for (const { kind, name } of ownerReferences) {
      if (kind === 'MachineSet') this.#hearSet(namespace, name)
      if (kind === 'MachinePool') this.#hearPool(namespace, name)
    }
  }

  #hearAll(namespace: string): void {
    const { api, kinds } = this.hub
    for (const deployment of api.list(kinds.deployment, { namespace }))
      this.#hearDeploymentAndTopology(deployment)
    for (const { metadata } of api.list(kinds.pool, { namespace })) this.#hearPool(namespace, metadata.name)
    for (const { metadata } of api.list(kinds.poolInstance, { namespace }))
      this.#hearPoolInstance(namespace, metadata.name)
    this.#hearHealthChecks(namespace)
    for (const { metadata } of api.list(kinds.set, { namespace })) this.#hearSet(namespace, metadata.name)
    for (const { metadata } of api.list(kinds.machine, { namespace }))
      this.#hearMachine(namespace, metadata.name)
  }

  /** Whether Machines are up to date depends on their MachineDeployment. */
  #hearMachinesOf({ metadata: { name, namespace = '' } }: FullDeployment): void {
    const { api, kinds, names } = this.hub
    const labelSelector = { matchLabels: { [names.deploymentName]: name } }
    for (const { metadata } of api.list(kinds.machine, { namespace, labelSelector }))
      this.#hearMachine(namespace, metadata.name)
  }

  /** The object of a Machine is gone, perhaps because a user removed its finalizer: removes its machine. */
  #bury(machine: FullMachine): void {
    const { name, uid = '' } = machine.metadata
    const isKnown = this.infrastructure.records().some((record) => record.uid === uid)
    this.infrastructure.forget(uid)
    if (isKnown) this.#attempt(() => this.infrastructure.room.removeNode(name))
    this.#hearOwners(machine)
  }

  #seeNode(node: Node): void {
    this.#nodes.put(node)
    this.#hearNode(node)
  }

  #hearNode({ spec }: Node): void {
    for (const record of this.infrastructure.sharing(spec?.providerID ?? '')) {
      this.hearRecord(record)
      this.#hearHealthChecks(record.namespace)
    }
  }

  /** A Node of an earlier run without a Machine has no machine. */
  #removeLostNodes(): void {
    const names = new Set(this.infrastructure.records().map(({ name }) => name))
    for (const { metadata, spec } of this.#workload.list(coreKinds.node))
      if (spec?.providerID?.startsWith('simulated://') === true && !names.has(metadata.name))
        this.#attempt(() => this.infrastructure.room.removeNode(metadata.name))
  }

  #attempt(act: () => void): void {
    try {
      act()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.hub.runtime.logger.debug('the simulated Cluster API could not write an object', { error })
    }
  }
}

/**
 * Writes the capacity of its machines to a template, as infrastructure providers do for scaling from zero
 * (cluster-api.md 6).
 */
function reportCapacity({ api, kinds }: HubParts, template: InfrastructureTemplate): void {
  const { architecture = 'amd64', capacity, operatingSystem = 'linux' } = template.spec?.template?.spec ?? {}
  if (capacity === undefined) return
  const status = { capacity, nodeInfo: { architecture, operatingSystem } }
  const { metadata } = template
  if (!isDeepStrictEqual(template.status, status))
    api.patch(kinds.template, metadata.namespace, metadata.name, { status }, 'status')
}
