/** A cluster with node groups in a simulated Exoscale, and `tenon cluster-autoscaler` on virtual time. */
import { kinds, type KubeObject, type Lease, type Node, type Pod, type ResourceType } from '@tenon/api'
import { readOptions, runAutoscaler } from '@tenon/cluster-autoscaler'
import { createCredentials, type Credentials, startDevCluster } from '@tenon/devcluster'
import type { NodeGroupDependencies, NodeGroups } from '@tenon/provider'
import { nodeGroupModuleOver } from '@tenon/provider-exoscale'
import { type ExoscaleCluster, type ExoscaleSettings, exoscaleSimulator } from '@tenon/simulator-exoscale'
import {
  eventLoopTurns,
  type Logger,
  Secret,
  SeededRandom,
  silentLogger,
  type SocketServer,
  type Transport,
  VirtualClock,
} from '@tenon/runtime'
import { electorOver } from './elector.ts'
import { ProcessClock } from '../simulation/process/process-clock.ts'
import { ProcessPort } from '../simulation/process/process-port.ts'

const host = '127.0.0.1'
const apiPort = 6443
const organisation = {
  zone: 'ch-gva-2',
  clusterId: 'f1b5a3c2-6d0e-4c57-9a8b-2f4e6d8c0a11',
  key: 'EXOscaler000000000000000001',
  secret: 'simulated-secret',
} as const

/** The permissions that the documentation lists, for SKS and for other pools. */
const role: readonly string[] = [
  'get-instance',
  'get-instance-pool',
  'get-operation',
  'get-quota',
  'list-sks-clusters',
  'scale-sks-nodepool',
  'evict-sks-nodepool-members',
  'scale-instance-pool',
  'evict-instance-pool-members',
]

/** An Instance Pool of the zone, whose members join the cluster. */
export interface WorldPool {
  readonly name: string
  readonly kind: 'nodepool' | 'instancePool'
  /** Such as `standard.medium`. */
  readonly type: string
  readonly size: number
  readonly min: number
  readonly max: number
}

export interface AutoscalerWorldOptions {
  readonly seed: number
  readonly pools: readonly WorldPool[]
  /** Flags besides `--nodes`. */
  readonly flags?: readonly string[]
  readonly credentials?: Credentials
  readonly cloudSettings?: Partial<ExoscaleSettings>
  readonly logger?: Logger
  /** The clock of the world; default: a new one. */
  readonly clock?: VirtualClock
  /** Wraps the ports of the process, and changes its `--nodes` flags. */
  readonly ports?: Partial<WorldPorts>
}

interface WorldPorts {
  readonly api: (inner: Transport, identity: string) => Transport
  readonly cloud: (inner: Transport, identity: string) => Transport
  readonly specs: (specs: readonly string[]) => readonly string[]
  readonly groups: (inner: NodeGroups) => NodeGroups
}

/** A running autoscaler process. */
export interface AutoscalerProcess {
  /** As in the lease. */
  readonly identity: string
  /** The clock of the process, which can be wrong or paused. */
  readonly clock: ProcessClock
  /** All connections of the process, which can be made to crash. */
  readonly port: ProcessPort
  /** Stops it cleanly, and waits for the end. */
  readonly end: () => Promise<void>
  /** Why it ended by itself; undefined while it runs. */
  readonly failure: () => unknown
}

const unchanged = <T>(inner: T): T => inner

export class AutoscalerWorld {
  readonly clock: VirtualClock
  readonly cluster: ExoscaleCluster
  readonly pools: readonly WorldPool[]
  readonly #options: AutoscalerWorldOptions
  readonly #adminToken: Secret
  readonly #ids = new Map<string, string>()
  readonly #nodepoolIds = new Map<string, string>()
  #processes = 0

  private constructor(
    options: AutoscalerWorldOptions,
    clock: VirtualClock,
    cluster: ExoscaleCluster,
    adminToken: Secret,
  ) {
    this.#options = options
    this.clock = clock
    this.cluster = cluster
    this.pools = options.pools
    this.#adminToken = adminToken
  }

  /** Starts the cluster with the first members of its pools, and waits until they are ready. */
  static async start(options: AutoscalerWorldOptions): Promise<AutoscalerWorld> {
    const { clock = new VirtualClock(undefined, 1) } = options
    const credentials = options.credentials ?? (await createCredentials(clock.now()))
    const cluster = startDevCluster({
      clock,
      random: new SeededRandom(`cluster-${options.seed}`),
      logger: options.logger ?? silentLogger,
      credentials,
      simulator: exoscaleSimulator({
        ...organisation,
        secret: new Secret(organisation.secret),
        operations: role,
        ...(options.cloudSettings && { settings: options.cloudSettings }),
      }),
    })
    cluster.announce(host, apiPort)
    cluster.cloud.setBaseUrl(`http://${host}/v2`)
    const world = new AutoscalerWorld(options, clock, cluster, credentials.adminToken)
    for (const pool of options.pools) world.#addPool(pool)
    await clock.advance(60_000)
    return world
  }

  /**
   * Starts a process; several compete for one lease.
   * @param more additional flags of this process.
   */
  startAutoscaler(...more: readonly string[]): AutoscalerProcess {
    const clock = new ProcessClock(this.clock)
    const { ports = {}, flags = [], seed, logger = silentLogger } = this.#options
    const { api = unchanged, cloud = unchanged, specs = unchanged, groups = unchanged } = ports
    const nodes = this.pools.map(({ min, max, name }) => `${min}:${max}:${name}`)
    const read = readOptions(
      [...specs(nodes).map((spec) => `--nodes=${spec}`), ...flags, ...more],
      ['exoscale'],
    )
    if (read.kind !== 'options') throw new Error(`the flags are refused: ${JSON.stringify(read)}`)
    const port = new ProcessPort(clock)
    const number = this.#processes++
    const identity = `autoscaler-${number}`
    const transport = port.guard(api(this.kubeTransport(), identity))
    const ending = new AbortController()
    const exoscale = nodeGroupModuleOver(() =>
      port.guard(cloud({ send: this.cluster.cloud.handle }, identity)),
    )
    const candidate = {
      options: read.autoscaler,
      process: read.process,
      identity,
      clock,
      random: new SeededRandom(`autoscaler-${seed}-${number}`),
      logger,
    }
    const plan = {
      ...candidate,
      ...electorOver(transport, candidate),
      warnings: read.warnings,
      cloud: {
        open: (dependencies: NodeGroupDependencies) => groups(exoscale.open(dependencies)),
      },
      env: {
        EXOSCALE_ZONE: organisation.zone,
        EXOSCALE_API_KEY: organisation.key,
        EXOSCALE_API_SECRET: organisation.secret,
        EXOSCALE_API_ENDPOINT: `http://${host}/v2`,
      },
      kubernetes: { transport, server: `https://${host}:${apiPort}` },
      serve: () => Promise.resolve(noServer),
      userAgent: 'tenon/world',
      turns: eventLoopTurns,
    }
    let failure: unknown
    let isOver = false
    const run = async () => {
      try {
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

  /** ID of an Instance Pool, by the name of the pool or of its nodepool. */
  poolId(name: string): string {
    const id = this.#ids.get(name)
    if (id === undefined) throw new Error(`there is no pool ${name}`)
    return id
  }

  /** ID of the nodepool with this name; undefined for a pool outside SKS. */
  nodepoolId(name: string): string | undefined {
    return this.#nodepoolIds.get(name)
  }

  /** IDs of the members of a pool. */
  members(name: string): readonly string[] {
    const poolId = this.poolId(name)
    return this.cluster.cloud
      .instances()
      .flatMap(({ id, instancePoolId }) => (instancePoolId === poolId ? [id] : []))
  }

  /** The leader election lease. */
  lease(): Lease | undefined {
    return this.cluster.server.local.get(kinds.lease, 'kube-system', 'cluster-autoscaler')
  }

  nodes(): readonly Node[] {
    return this.cluster.server.local.list(kinds.node)
  }

  pods(): readonly Pod[] {
    return this.cluster.server.local.list(kinds.pod)
  }

  /** Pods without a node that have not terminated. */
  pending(): readonly Pod[] {
    return this.pods().filter(
      ({ spec, status }) => spec.nodeName === undefined && status?.phase === 'Pending',
    )
  }

  create<T extends KubeObject>(type: ResourceType<T>, object: T): T {
    return this.cluster.server.local.create(type, object)
  }

  async stop(): Promise<void> {
    this.cluster.stop()
    await this.clock.advance(1000)
  }

  /** Connects to the API server as a cluster administrator. */
  kubeTransport(): Transport {
    const authorization = `Bearer ${this.#adminToken.reveal()}`
    return {
      send: (request, signal) =>
        this.cluster.server.handle({ ...request, headers: { ...request.headers, authorization } }, signal),
    }
  }

  #addPool({ name, kind, type, size }: WorldPool): void {
    const { cloud } = this.cluster
    const before = new Set(cloud.instances().map(({ instancePoolId }) => instancePoolId))
    const seed = { name, type, size, joins: true as const, prefix: name }
    const id = `b0020000-0000-4000-8000-${String(before.size).padStart(12, '0')}`
    cloud.add(kind === 'nodepool' ? { nodepools: [{ ...seed, id }] } : { instancePools: [seed] })
    const added = cloud.instances().find(({ instancePoolId }) => !before.has(instancePoolId))
    this.#ids.set(name, added?.instancePoolId ?? '')
    if (kind === 'nodepool') this.#nodepoolIds.set(name, id)
  }
}

const noServer: SocketServer = { port: 8085, url: `http://${host}:8085`, close: () => Promise.resolve() }
