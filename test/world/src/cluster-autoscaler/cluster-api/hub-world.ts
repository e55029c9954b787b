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
import { readOptions, runAutoscaler } from '@tenon/cluster-autoscaler'
import { type Credentials, type DevCluster, startDevCluster } from '@tenon/devcluster'
import type { NodeGroupDependencies, NodeGroups } from '@tenon/provider'
import { clusterApi } from '@tenon/provider-cluster-api/module'
import {
  type ClusterApi,
  clusterApiSimulator,
  type FullDeployment,
  type FullMachine,
} from '@tenon/simulator-cluster-api'
import { eventLoopTurns, SeededRandom, silentLogger, type Transport, type VirtualClock } from '@tenon/runtime'
import { ProcessClock } from '../../simulation/process/process-clock.ts'
import { ProcessPort } from '../../simulation/process/process-port.ts'
import type { AutoscalerProcess } from '../autoscaler-world.ts'
import { electorOver } from '../elector.ts'

/** Namespace of all objects of Cluster API. */
export const namespace = 'default'

export const deleteMachine = 'cluster.x-k8s.io/delete-machine'

/** A MachineDeployment with sizes; without, nobody scales it. */
export interface WorldGroup {
  readonly name: string
  readonly cpu: number
  readonly memory: string
  readonly replicas: number
  readonly bounds?: { readonly min: number; readonly max: number }
}

interface HubWorldOptions {
  readonly seed: number
  readonly groups: readonly WorldGroup[]
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
  #processes = 0

  private constructor(options: HubWorldOptions, cluster: DevCluster<ClusterApi>) {
    this.clock = options.clock
    this.groups = options.groups
    this.cluster = cluster
    this.#options = options
  }

  /** Starts the cluster with the first Machines of its groups, and waits until their Nodes are ready. */
  static async start(options: HubWorldOptions): Promise<HubWorld> {
    const { clock, credentials, groups, seed } = options
    const cluster = startDevCluster({
      clock,
      random: new SeededRandom(`cluster-${seed}`),
      logger: silentLogger,
      credentials,
      simulator: clusterApiSimulator(),
    })
    cluster.announce('127.0.0.1', 6443)
    const world = new HubWorld(options, cluster)
    for (const group of groups) world.#addGroup(group)
    await clock.advance(120_000)
    return world
  }

  startAutoscaler(): AutoscalerProcess {
    const { ports, seed } = this.#options
    const clock = new ProcessClock(this.clock)
    const read = readOptions(['--cloud-provider=clusterapi', '--scan-interval=20s'], ['clusterapi'])
    if (read.kind !== 'options') throw new Error(`the flags are refused: ${JSON.stringify(read)}`)
    const port = new ProcessPort(clock)
    const number = this.#processes++
    const identity = `autoscaler-${number}`
    const transport = port.guard(ports.api(this.#transport(), identity))
    const hub = port.guard(ports.hub(this.#transport(), identity))
    const candidate = {
      options: read.autoscaler,
      process: read.process,
      identity,
      clock,
      random: new SeededRandom(`autoscaler-${seed}-${number}`),
      logger: silentLogger,
    }
    const ending = new AbortController()
    let failure: unknown
    let isOver = false
    const run = async () => {
      try {
        const module = await clusterApi.nodeGroups?.()
        if (module === undefined) throw new Error('Cluster API has no node groups')
        const plan = {
          ...candidate,
          ...electorOver(transport, candidate),
          warnings: read.warnings,
          cloud: { open: (parts: NodeGroupDependencies) => ports.groups(module.open(parts)) },
          env: {},
          kubernetes: { transport, server: 'https://127.0.0.1:6443' },
          management: { transport: hub, server: 'https://127.0.0.1:6444' },
          serve: () => Promise.resolve({ port: 0, url: '', close: () => Promise.resolve() }),
          userAgent: 'tenon/world',
          turns: eventLoopTurns,
        }
        await runAutoscaler(plan, ending.signal)
      } catch (error) {
        failure = error
      }
      isOver = true
    }
    const running = run()
    return {
      identity,
      clock,
      port,
      failure: () => failure,
      end: async () => {
        ending.abort(new Error('asked to end'))
        await this.clock.advanceUntil(() => isOver, 60_000)
        await running
      },
    }
  }

  deployment(name: string): FullDeployment | undefined {
    return this.cluster.cloud.hub.get(this.cluster.cloud.kinds.deployment, namespace, name)
  }

  /** Machines of a MachineDeployment, or all of them. */
  machines(deployment?: string): readonly FullMachine[] {
    return this.cluster.cloud.hub
      .list(this.cluster.cloud.kinds.machine, { namespace })
      .filter((machine) => deployment === undefined || groupOf(machine) === deployment)
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

  #addGroup({ name, bounds, cpu, memory, replicas }: WorldGroup): void {
    const { hub, kinds: served } = this.cluster.cloud
    const { deployment, template } = served
    const capacity = { cpu: String(cpu), memory, 'ephemeral-storage': '50Gi', pods: '110' }
    hub.create(template, {
      apiVersion: apiVersionOf(template),
      kind: template.kind,
      metadata: { name, namespace },
      spec: { template: { spec: { capacity, registersUnregistered: false } } },
    })
    const size = (which: string) => `cluster.x-k8s.io/cluster-api-autoscaler-node-group-${which}-size`
    hub.create(deployment, {
      apiVersion: apiVersionOf(deployment),
      kind: deployment.kind,
      metadata: {
        name,
        namespace,
        ...(bounds !== undefined && {
          annotations: { [size('min')]: String(bounds.min), [size('max')]: String(bounds.max) },
        }),
      },
      spec: {
        clusterName: 'workload',
        replicas,
        template: {
          spec: {
            clusterName: 'workload',
            infrastructureRef: { apiGroup: template.group, kind: template.kind, name },
          },
        },
      },
    })
  }
}

/** Name of the MachineDeployment of a Machine; empty if it has none. */
export const groupOf = ({ metadata }: KubeObject): string =>
  metadata.labels?.['cluster.x-k8s.io/deployment-name'] ?? ''
