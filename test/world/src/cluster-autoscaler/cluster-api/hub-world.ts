/** A cluster whose Machines the simulated Cluster API manages, and `tenon cluster-autoscaler` on virtual time. */
import {
  apiVersionOf,
  kinds,
  type KubeObject,
  type Lease,
  type Node,
  type Pod,
  type ResourceType,
} from '@tenon/api'
import { type Credentials, type DevCluster, startDevCluster } from '@tenon/devcluster'
import type { NodeGroupModule, NodeGroups } from '@tenon/provider'
import { ownNames } from '@tenon/provider-cluster-api'
import { clusterApi } from '@tenon/provider-cluster-api/module'
import {
  type ClusterApi,
  clusterApiSimulator,
  type FullDeployment,
  type FullMachine,
  type MachineShape,
} from '@tenon/simulator-cluster-api'
import { SeededRandom, silentLogger, type Transport, type VirtualClock } from '@tenon/runtime'
import { deploymentOf, memberLabel, namespace } from '../../simulation/cloud/hub-objects.ts'
import { type AutoscalerProcess, startProcess } from '../autoscaler-process.ts'

export const deleteMachine = 'cluster.x-k8s.io/delete-machine'
export const paused = 'cluster.x-k8s.io/paused'

/** A MachineDeployment; without bounds it is no node group. */
export interface WorldGroup {
  readonly name: string
  readonly cpu: number
  readonly memory: string
  readonly replicas: number
  readonly bounds?: { readonly min: number; readonly max: number }
  /** It belongs to the topology of the Cluster, which keeps `replicas` if it names them. */
  readonly topology?: { readonly replicas?: number }
  /** All of its Machines are bound to NodeClaims. */
  readonly isMember?: true
}

interface HubWorldOptions {
  readonly seed: number
  readonly groups: readonly WorldGroup[]
  /** Machines of a control plane. */
  readonly controlPlanes: number
  readonly credentials: Credentials
  readonly clock: VirtualClock
  /** Wraps the ports of a process. */
  readonly ports: {
    readonly api: (inner: Transport, identity: string) => Transport
    readonly hub: (inner: Transport, identity: string) => Transport
    readonly groups: (inner: NodeGroups) => NodeGroups
  }
}

export class HubWorld {
  readonly clock: VirtualClock
  readonly cluster: DevCluster<ClusterApi>
  readonly groups: readonly WorldGroup[]
  readonly #options: HubWorldOptions
  readonly #module: NodeGroupModule
  #processes = 0

  private constructor(options: HubWorldOptions, cluster: DevCluster<ClusterApi>, module: NodeGroupModule) {
    this.clock = options.clock
    this.groups = options.groups
    this.cluster = cluster
    this.#options = options
    this.#module = module
  }

  /** Starts the cluster with the first Machines of its groups, and waits until their Nodes are ready. */
  static async start(options: HubWorldOptions): Promise<HubWorld> {
    const { clock, controlPlanes, credentials, groups, seed } = options
    const module = await clusterApi.nodeGroups?.()
    if (module === undefined) throw new Error('Cluster API has no node groups')
    const cluster = startDevCluster({
      clock,
      random: new SeededRandom(`cluster-${seed}`),
      logger: silentLogger,
      credentials,
      simulator: clusterApiSimulator(),
    })
    cluster.announce('127.0.0.1', 6443)
    const world = new HubWorld(options, cluster, module)
    for (const { name, topology } of groups)
      if (topology?.replicas !== undefined) world.keepReplicas(name, topology.replicas)
    for (const group of groups) world.#addGroup(group)
    if (controlPlanes > 0) world.#addTemplate('control-plane', controlPlaneShape)
    for (let index = 0; index < controlPlanes; index++) world.#addControlPlane(`control-plane-${index}`)
    await clock.advance(120_000)
    for (const { isMember, name } of groups)
      if (isMember) for (const machine of world.machines(name)) world.bind(machine, machine.metadata.name)
    return world
  }

  startAutoscaler(): AutoscalerProcess {
    const { ports, seed } = this.#options
    return startProcess(this.clock, {
      seed,
      number: this.#processes++,
      flags: ['--cloud-provider=clusterapi', '--scan-interval=20s'],
      provider: 'clusterapi',
      logger: silentLogger,
      api: (identity) => ports.api(this.#transport(), identity),
      cloud: (port, identity) => ({
        cloud: { open: (dependencies) => ports.groups(this.#module.open(dependencies)) },
        env: {},
        management: {
          transport: port.guard(ports.hub(this.#transport(), identity)),
          server: 'https://127.0.0.1:6444',
        },
      }),
    })
  }

  /** What a person writes into the topology of the Cluster. */
  keepReplicas(name: string, replicas: number): void {
    const { hub, kinds: served } = this.cluster.cloud
    const machineDeployments = [{ name, replicas }]
    hub.patch(served.cluster, namespace, 'workload', {
      spec: { topology: { workers: { machineDeployments } } },
    })
  }

  /** The controller gives a Machine to a NodeClaim; undefined: takes it back. */
  bind({ metadata }: FullMachine, claim: string | undefined): void {
    const { hub, kinds: served } = this.cluster.cloud
    const annotations = {
      [ownNames.nodeClaim]: claim ?? null,
      [ownNames.nodeClaimUid]: claim === undefined ? null : `uid-${claim}`,
    }
    hub.patch(served.machine, namespace, metadata.name, { metadata: { annotations } })
  }

  /** A person pauses a MachineDeployment, or lets it go on. */
  pause(name: string, value: '' | null): void {
    const { hub, kinds: served } = this.cluster.cloud
    hub.patch(served.deployment, namespace, name, { metadata: { annotations: { [paused]: value } } })
  }

  deployment(name: string): FullDeployment | undefined {
    return this.cluster.cloud.hub.get(this.cluster.cloud.kinds.deployment, namespace, name)
  }

  /** Machines of a MachineDeployment, or all of them. */
  machines(deployment?: string): readonly FullMachine[] {
    return this.cluster.cloud.hub
      .list(this.cluster.cloud.kinds.machine, { namespace })
      .filter((machine) => deployment === undefined || deploymentOf(machine) === deployment)
  }

  /** Machines of node groups. */
  members(): readonly FullMachine[] {
    const names = new Set(this.groups.flatMap(({ bounds, name }) => (bounds === undefined ? [] : name)))
    return this.machines().filter((machine) => names.has(deploymentOf(machine)))
  }

  lease(): Lease | undefined {
    return this.cluster.server.local.get(kinds.lease, 'kube-system', 'cluster-autoscaler')
  }

  nodes(): readonly Node[] {
    return this.cluster.server.local.list(kinds.node)
  }

  pods(): readonly Pod[] {
    return this.cluster.server.local.list(kinds.pod)
  }

  create<T extends KubeObject>(type: ResourceType<T>, object: T): T {
    return this.cluster.server.local.create(type, object)
  }

  async stop(): Promise<void> {
    this.cluster.stop()
    await this.clock.advance(1000)
  }

  #transport(): Transport {
    const authorization = `Bearer ${this.#options.credentials.adminToken.reveal()}`
    return {
      send: (request, signal) =>
        this.cluster.server.handle({ ...request, headers: { ...request.headers, authorization } }, signal),
    }
  }

  #addGroup({ name, bounds, cpu, isMember, memory, replicas, topology }: WorldGroup): void {
    const { hub, kinds: served } = this.cluster.cloud
    const { deployment } = served
    this.#addTemplate(name, {
      capacity: { cpu: String(cpu), memory, 'ephemeral-storage': '50Gi', pods: '110' },
    })
    const size = (which: string) => `cluster.x-k8s.io/cluster-api-autoscaler-node-group-${which}-size`
    hub.create(deployment, {
      apiVersion: apiVersionOf(deployment),
      kind: deployment.kind,
      metadata: {
        name,
        namespace,
        labels: {
          ...(isMember && { [memberLabel]: '' }),
          ...(topology !== undefined && {
            'topology.cluster.x-k8s.io/owned': '',
            'topology.cluster.x-k8s.io/deployment-name': name,
          }),
        },
        ...(bounds !== undefined && {
          annotations: { [size('min')]: String(bounds.min), [size('max')]: String(bounds.max) },
        }),
      },
      spec: { clusterName: 'workload', replicas, template: { spec: this.#machineSpec(name) } },
    })
  }

  #addControlPlane(name: string): void {
    const { hub, kinds: served } = this.cluster.cloud
    hub.create(served.machine, {
      apiVersion: apiVersionOf(served.machine),
      kind: served.machine.kind,
      metadata: {
        name,
        namespace,
        labels: { 'cluster.x-k8s.io/control-plane': '' },
        ownerReferences: [
          {
            apiVersion: 'controlplane.cluster.x-k8s.io/v1beta2',
            kind: 'KubeadmControlPlane',
            name: 'control-plane',
            uid: 'control-plane',
            controller: true,
          },
        ],
      },
      spec: this.#machineSpec('control-plane'),
    })
  }

  #addTemplate(name: string, shape: MachineShape): void {
    const { hub, kinds: served } = this.cluster.cloud
    hub.create(served.template, {
      apiVersion: apiVersionOf(served.template),
      kind: served.template.kind,
      metadata: { name, namespace },
      spec: { template: { spec: { registersUnregistered: false, ...shape } } },
    })
  }

  #machineSpec(template: string) {
    const { kind, group: apiGroup } = this.cluster.cloud.kinds.template
    return { clusterName: 'workload', infrastructureRef: { apiGroup, kind, name: template } }
  }
}

const controlPlaneShape: MachineShape = {
  capacity: { cpu: '4', memory: '8Gi', 'ephemeral-storage': '50Gi', pods: '110' },
  taints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }],
}
