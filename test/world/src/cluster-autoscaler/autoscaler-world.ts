/** A cluster with node groups in a simulated Exoscale, and `tenon cluster-autoscaler` on virtual time. */
import { kinds, type KubeObject, type Lease, type Node, type Pod, type ResourceType } from '@tenon/api'
import { createCredentials, type Credentials, startDevCluster } from '@tenon/devcluster'
import type { NodeGroups } from '@tenon/provider'
import { nodeGroupModuleOver } from '@tenon/provider-exoscale'
import { type ExoscaleCluster, type ExoscaleSettings, exoscaleSimulator } from '@tenon/simulator-exoscale'
import { type Logger, Secret, SeededRandom, silentLogger, type Transport, VirtualClock } from '@tenon/runtime'
import { apiPort, type AutoscalerProcess, host, startProcess } from './autoscaler-process.ts'

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
    const { ports = {}, flags = [], seed, logger = silentLogger } = this.#options
    const { api = unchanged, cloud = unchanged, specs = unchanged, groups = unchanged } = ports
    const nodes = this.pools.map(({ min, max, name }) => `${min}:${max}:${name}`)
    return startProcess(this.clock, {
      seed,
      number: this.#processes++,
      flags: [...specs(nodes).map((spec) => `--nodes=${spec}`), ...flags, ...more],
      provider: 'exoscale',
      logger,
      api: (identity) => api(this.kubeTransport(), identity),
      cloud: (port, identity) => {
        const exoscale = nodeGroupModuleOver(() =>
          port.guard(cloud({ send: this.cluster.cloud.handle }, identity)),
        )
        return {
          cloud: { open: (dependencies) => groups(exoscale.open(dependencies)) },
          env: {
            EXOSCALE_ZONE: organisation.zone,
            EXOSCALE_API_KEY: organisation.key,
            EXOSCALE_API_SECRET: organisation.secret,
            EXOSCALE_API_ENDPOINT: `http://${host}/v2`,
          },
        }
      },
    })
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
