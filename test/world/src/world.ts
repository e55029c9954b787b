/** A cluster, its cloud and the operator in one process on a virtual clock, repeatable from a seed. */
import {
  capacityBufferCrd,
  capacityQuotaCrd,
  provisioningRequestCrd,
  type KubeObject,
  karpenterKinds,
  kinds,
  type Node,
  type NodeClaim,
  type NodePool,
  nodeClaimCrd,
  nodeOverlayCrd,
  nodePoolCrd,
  type Pod,
  type PodSpec,
  parseResource,
  type ResourceList,
  type ResourceType,
} from '@tenon/api'
import {
  createCredentials,
  type Credentials,
  type DevClusterOptions,
  type KubeletHandle,
  startDevCluster,
} from '@tenon/devcluster'
import {
  type Exoscale,
  type ExoscaleCluster,
  type ExoscaleSettings,
  exoscaleSimulator,
} from '@tenon/simulator-exoscale'
import { createCacheRegistry, createEventRecorder, createKubeClient, type Rate } from '@tenon/kube'
import {
  defaultSettings,
  InlineDecider,
  Operator,
  type SchedulingDecider,
  type Settings,
} from '@tenon/operator'
import type { CloudProvider } from '@tenon/provider'
import {
  cleverNodeClassCrd,
  type NodeGroup,
  nodeGroupKind,
  openCleverCloud,
  ownNames,
} from '@tenon/provider-clever-cloud'
import {
  type CleverCloud,
  type CleverCloudOptions,
  cleverCloudSimulator,
} from '@tenon/simulator-clever-cloud'
import { clusterAPINodeClassCrd, openClusterApi } from '@tenon/provider-cluster-api'
import { type ClusterApi, type ClusterApiOptions, clusterApiSimulator } from '@tenon/simulator-cluster-api'
import {
  type ExoscaleOptions,
  exoscaleNodeClassCrd,
  openExoscale,
  readExoscaleOptions,
} from '@tenon/provider-exoscale'
import {
  type KwokDependencies,
  KwokProvider,
  kwokNodeClassCrd,
  kwokNodeClassKind,
} from '@tenon/provider-kwok'
import {
  type Clock,
  createTracer,
  type FinishedSpan,
  type Logger,
  Secret,
  SeededRandom,
  silentLogger,
  tracedTransport,
  type Transport,
  VirtualClock,
} from '@tenon/runtime'
import { Mortality } from './mortality.ts'

const crdKind: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}
/** No part of the operator reads Deployments. */
export const deploymentKind: ResourceType = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
}

const host = '127.0.0.1'
const direct = (inner: Transport): Transport => inner
const inline = (clock: VirtualClock): SchedulingDecider => new InlineDecider(clock)
const apiPort = 6443
const cloud = {
  zone: 'ch-gva-2',
  clusterId: 'f1b5a3c2-6d0e-4c57-9a8b-2f4e6d8c0a11',
  key: 'EXOtenon0000000000000000001',
  secret: 'simulated-secret',
} as const

/** The API server's address for instances. */
export const clusterEndpoint = `https://${host}:${apiPort}`

/**
 * Settings of the provider with the simulated cloud's credentials.
 * @param hasGpuDriver whether nodes of GPU types publish their GPUs as devices.
 */
export function exoscaleOptions(zone: string = cloud.zone, hasGpuDriver = false): ExoscaleOptions {
  const options = readExoscaleOptions({
    EXOSCALE_API_ENDPOINT: `http://${host}/v2`,
    EXOSCALE_ZONE: zone,
    EXOSCALE_SKS_CLUSTER_ID: cloud.clusterId,
    EXOSCALE_API_KEY: cloud.key,
    EXOSCALE_API_SECRET: cloud.secret,
    ...(hasGpuDriver && { EXOSCALE_GPU_DEVICES: 'nvidia' }),
  })
  if ('error' in options) throw new Error(options.error)
  return options.ok
}

/** The options of a world; equal options replay the same run. */
export interface WorldOptions {
  readonly seed: number
  /** A provider by name, or a test's own. */
  readonly provider: 'exoscale' | 'kwok' | 'clever-cloud' | 'cluster-api' | CloudProvider
  /** The platform of the provider `clever-cloud`. */
  readonly cleverCloud?: CleverCloudOptions
  /** Cluster API of the provider `cluster-api`. */
  readonly clusterApi?: Pick<ClusterApiOptions, 'settings' | 'version'>
  /** Percentage of the nominal memory that instances of the provider `kwok` see. */
  readonly kwokMemoryPercent?: number
  /** Settings of the provider `kwok`. */
  readonly kwok?: Pick<KwokDependencies, 'instanceTypes' | 'partitions'>
  /** Settings of the operator that differ from the defaults. */
  readonly settings?: Partial<Settings>
  /** Whether the kind ProvisioningRequest is served; default: no. */
  readonly servesRequests?: boolean
  /** Whether the kind CapacityBuffer is served; default: yes. Served kinds are part of what a seed replays. */
  readonly servesBuffers?: boolean
  /** Whether the kind CapacityQuota is served; default: no. */
  readonly servesQuotas?: boolean
  /** Wraps the operator's connection to the API server, for faults. */
  readonly apiPath?: (inner: Transport, clock: Clock) => Transport
  /** Rate limit of the operator's requests to the API server; default: none. */
  readonly rate?: Rate
  /** Default: decisions take no time. */
  readonly decider?: (clock: VirtualClock) => SchedulingDecider
  /** Wraps the operator's provider. */
  readonly wrapProvider?: (inner: CloudProvider) => CloudProvider
  /** Wraps the connection to the simulated cloud. */
  readonly cloudPath?: (inner: Transport) => Transport
  /** Turns of the event loop between two timers; see {@link VirtualClock}. */
  readonly turns?: number
  /** When the story begins, in Unix milliseconds. */
  readonly startMs?: number
  /** Keys of the cluster; default: generated. */
  readonly credentials?: Credentials
  readonly logger?: Logger
  /** Receives the spans of operators; default: nothing is traced. */
  readonly onSpan?: (span: FinishedSpan) => void
  readonly cluster?: Pick<
    DevClusterOptions<Exoscale>,
    'kubelets' | 'controllers' | 'scheduler' | 'gitVersion' | 'recordsOwners' | 'featureGates'
  >
  readonly cloudSettings?: Partial<ExoscaleSettings>
  /** Zone of the simulated cloud; default: ch-gva-2. */
  readonly zone?: string
}

interface ProviderParts {
  readonly client: ReturnType<typeof createKubeClient>
  readonly registry: ReturnType<typeof createCacheRegistry>
  readonly events: ReturnType<typeof createEventRecorder>
  readonly random: SeededRandom | ReturnType<SeededRandom['fork']>
  readonly process: Mortality
}

/** A running operator and its process, which may crash. */
export interface RunningOperator {
  readonly operator: Operator
  readonly process: Mortality
}

/** A whole world; every method that waits does so on virtual time. */
export class World {
  readonly clock: VirtualClock
  readonly cluster: ExoscaleCluster
  readonly #options: WorldOptions
  readonly #random: SeededRandom
  readonly #logger: Logger
  readonly #adminToken: Secret
  #cleverCloud: CleverCloud | undefined
  #clusterApi: ClusterApi | undefined
  readonly #kwokNodes = new Map<string, KubeletHandle>()
  #operators = 0

  private constructor(
    options: WorldOptions,
    clock: VirtualClock,
    cluster: ExoscaleCluster,
    adminToken: Secret,
  ) {
    this.#options = options
    this.clock = clock
    this.cluster = cluster
    this.#random = new SeededRandom(options.seed)
    this.#logger = options.logger ?? silentLogger
    this.#adminToken = adminToken
  }

  /** Starts the cluster with Tenon's kinds; the operator is started separately. */
  static async start(options: WorldOptions): Promise<World> {
    const clock = new VirtualClock(options.startMs, options.turns)
    const credentials = options.credentials ?? (await createCredentials(clock.now()))
    let cleverCloud: CleverCloud | undefined
    let clusterApi: ClusterApi | undefined
    const exoscaleZone = exoscaleSimulator({
      ...cloud,
      ...(options.zone !== undefined && { zone: options.zone }),
      secret: new Secret(cloud.secret),
      ...(options.cloudSettings && { settings: options.cloudSettings }),
    })
    const platform = cleverCloudSimulator(options.cleverCloud)
    const hub = clusterApiSimulator(options.clusterApi)
    const cluster = startDevCluster({
      clock,
      random: new SeededRandom(`cluster-${options.seed}`),
      logger: options.logger ?? silentLogger,
      credentials,
      ...options.cluster,
      simulator: {
        prepare: (api) => {
          exoscaleZone.prepare(api)
          if (options.provider === 'clever-cloud') platform.prepare(api)
          if (options.provider === 'cluster-api') hub.prepare(api)
        },
        start: (parts) => {
          const exoscale = exoscaleZone.start(parts)
          // Its cloud controller would remove nodes of another cloud.
          if (options.provider === 'clever-cloud' || options.provider === 'cluster-api') exoscale.stop()
          if (options.provider === 'clever-cloud') cleverCloud = platform.start(parts)
          if (options.provider === 'cluster-api') clusterApi = hub.start(parts)
          return exoscale
        },
      },
    })
    cluster.announce(host, apiPort)
    cluster.cloud.setBaseUrl(`http://${host}/v2`)
    const world = new World(options, clock, cluster, credentials.adminToken)
    world.#cleverCloud = cleverCloud
    world.#clusterApi = clusterApi
    const classes = [
      ...(options.provider === 'clever-cloud' ? [cleverNodeClassCrd] : []),
      ...(options.provider === 'cluster-api' ? [clusterAPINodeClassCrd] : []),
    ]
    for (const crd of [
      nodePoolCrd,
      nodeClaimCrd,
      nodeOverlayCrd,
      exoscaleNodeClassCrd(),
      kwokNodeClassCrd,
      ...classes,
      ...(options.servesBuffers === false ? [] : [capacityBufferCrd]),
      ...(options.servesRequests === true ? [provisioningRequestCrd] : []),
      ...(options.servesQuotas === true ? [capacityQuotaCrd] : []),
    ]) {
      world.install(crd)
    }
    world.#playKwok()
    await clock.advance(1000)
    return world
  }

  /** Texts that no log line may contain. */
  secrets(): readonly string[] {
    return [this.#adminToken.reveal(), cloud.secret]
  }

  /** Starts an operator that leads at once; it crashes at write `crashAt`, if given. */
  async startOperator(
    crashAt = Number.POSITIVE_INFINITY,
    when: 'before' | 'after' = 'after',
    settings: Partial<Settings> = {},
  ): Promise<RunningOperator> {
    const running = await this.startStandby(crashAt, when, settings)
    running.operator.lead()
    return running
  }

  /** Starts an operator that only follows the cluster until it is told to lead. */
  async startStandby(
    crashAt = Number.POSITIVE_INFINITY,
    when: 'before' | 'after' = 'after',
    settings: Partial<Settings> = {},
  ): Promise<RunningOperator> {
    const { clock } = this
    const { onSpan, rate } = this.#options
    const random = this.#random.fork(`operator-${this.#operators++}`)
    const logger = this.#logger
    const process = new Mortality(crashAt, when)
    const server = this.#cleverCloud?.through(this.kubeTransport()) ?? this.kubeTransport()
    const tracer =
      onSpan && createTracer({ clock, random: random.fork('traces'), isSampled: () => true, onEnd: onSpan })
    const guarded = process.guard((this.#options.apiPath ?? direct)(server, clock))
    const transport = tracedTransport(guarded, tracer)
    const client = createKubeClient({ transport, clock, userAgent: 'karpenter/world', ...(rate && { rate }) })
    const events = createEventRecorder({ client, clock, logger, random, component: 'karpenter' })
    const registry = createCacheRegistry({ client, clock, logger, random })
    const connecting = this.#provider({ client, registry, events, random, process })
    let provider: CloudProvider | undefined
    const connected = async (): Promise<void> => {
      provider = await connecting
    }
    void connected()
    await clock.advanceUntil(() => provider !== undefined, 60_000)
    const operator = new Operator({
      kubernetes: { client, registry, events },
      runtime: { clock, random, logger, tracer },
      provider: await connecting,
      decider: (this.#options.decider ?? inline)(clock),
      settings: {
        ...defaultSettings,
        brakeNamespace: 'kube-system',
        // VerticalPodAutoscalers are not served unless a test does so.
        vpaPredictions: false,
        ...this.#options.settings,
        ...settings,
      },
    })
    const observing = operator.observe()
    await clock.advanceUntil(() => operator.waitingFor.length === 0, 60_000)
    await observing
    return { operator, process }
  }

  /** The platform of the provider `clever-cloud`. */
  get cleverCloud(): CleverCloud {
    if (this.#cleverCloud === undefined) throw new Error('this world is of another provider')
    return this.#cleverCloud
  }

  /** Cluster API of the provider `cluster-api`; the cluster is its own management cluster. */
  get clusterApi(): ClusterApi {
    if (this.#clusterApi === undefined) throw new Error('this world is of another provider')
    return this.#clusterApi
  }

  nodeGroups(): readonly NodeGroup[] {
    return this.cluster.server.local.list(nodeGroupKind)
  }

  /** Stops an operator whose process has crashed. */
  async bury({ operator, process }: RunningOperator): Promise<void> {
    process.crash()
    const stopping = operator.stop()
    await Promise.race([stopping, this.clock.advance(1000)])
  }

  /** Serves a kind, as a user may make the cluster do later. */
  install(crd: object): void {
    this.create(crdKind, crd as KubeObject)
  }

  create<T extends KubeObject>(type: ResourceType<T>, object: T): T {
    return this.cluster.server.local.create(type, object)
  }

  pods(): readonly Pod[] {
    return this.cluster.server.local.list(kinds.pod)
  }

  nodes(): readonly Node[] {
    return this.cluster.server.local.list(kinds.node)
  }

  claims(): readonly NodeClaim[] {
    return this.cluster.server.local.list(karpenterKinds.nodeClaim)
  }

  /** Scales a Deployment in the namespace `default`. */
  scale(name: string, replicas: number): void {
    this.cluster.server.local.patch(deploymentKind, 'default', name, { spec: { replicas } })
  }

  /** Existing instances by the claim they were created for. */
  instancesByClaim(): ReadonlyMap<string, readonly string[]> {
    if (this.#options.provider === 'exoscale') {
      const alive = this.cluster.cloud.instances()
      return grouped(alive.map(({ id, labels }) => [labels['exoscale.com/node-claim'] ?? '', id]))
    }
    if (this.#options.provider === 'clever-cloud') {
      const alive = this.nodeGroups().filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      return grouped(
        alive.map(({ metadata }) => [metadata.labels?.[ownNames.nodeClaim] ?? '', metadata.name]),
      )
    }
    if (this.#options.provider === 'cluster-api') {
      const { hub, kinds: served } = this.clusterApi
      const owned = hub.list(served.machine)
      return grouped(
        owned.map(({ metadata }) => [metadata.annotations?.['tenon.sh/nodeclaim'] ?? '', metadata.name]),
      )
    }
    const nodes = this.nodes().filter((node) => node.spec?.providerID?.startsWith('kwok://') === true)
    return grouped(
      nodes.map((node) => [
        node.metadata.annotations?.['karpenter.kwok.sh/node-claim'] ?? '',
        node.metadata.name,
      ]),
    )
  }

  async stop(): Promise<void> {
    this.#cleverCloud?.stop()
    this.#clusterApi?.stop()
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

  async #provider(deps: ProviderParts): Promise<CloudProvider> {
    const wrap = this.#options.wrapProvider ?? ((inner: CloudProvider): CloudProvider => inner)
    return wrap(await this.#openProvider(deps))
  }

  async #openProvider(deps: ProviderParts): Promise<CloudProvider> {
    const { client, registry, events, random } = deps
    const runtime = { clock: this.clock, random, logger: this.#logger }
    const kubernetes = { client, registry, events, server: clusterEndpoint }
    if (typeof this.#options.provider !== 'string') return this.#options.provider
    if (this.#options.provider === 'kwok') {
      const nodeClasses = registry.cache(kwokNodeClassKind)
      return new KwokProvider({ client, nodeClasses, runtime, ...this.#options.kwok })
    }
    if (this.#options.provider === 'clever-cloud' || this.#options.provider === 'cluster-api') {
      const access = { fenced: direct, userAgent: 'karpenter/world' }
      const open = this.#options.provider === 'clever-cloud' ? openCleverCloud : openClusterApi
      return await open({ env: {}, kubernetes, cloud: access, runtime })
    }
    const cloudPath = this.#options.cloudPath ?? direct
    const cloudTransport = deps.process.guard(cloudPath({ send: this.cluster.cloud.handle }))
    return await openExoscale({
      options: exoscaleOptions(this.#options.zone, this.#options.cloudSettings?.gpuDriver),
      connect: () => cloudTransport,
      kubernetes,
      runtime,
    })
  }

  #asSeen(amounts: ResourceList = {}): ResourceList {
    const { kwokMemoryPercent: percent = 100 } = this.#options
    const { memory } = amounts
    if (memory === undefined || percent === 100) return amounts
    return { ...amounts, memory: String(Math.floor((parseResource('memory', memory) * percent) / 100)) }
  }

  /** Plays the kwok controller: a simulated node exists as long as its object. */
  #playKwok(): void {
    this.cluster.server.local.subscribe(kinds.node, {
      added: (node) => {
        const providerId = node.spec?.providerID ?? ''
        if (!providerId.startsWith('kwok://') || this.#kwokNodes.has(node.metadata.name)) return
        const kubelet = this.cluster.kubelets.start({
          nodeName: node.metadata.name,
          providerId,
          labels: node.metadata.labels ?? {},
          taints: [],
          capacity: this.#asSeen(node.status?.capacity),
          allocatable: this.#asSeen(node.status?.allocatable),
          addresses: [],
          kubeletVersion: 'v1.34.1',
          systemUuid: providerId,
        })
        this.#kwokNodes.set(node.metadata.name, kubelet)
      },
      deleted: (node) => {
        this.#kwokNodes.get(node.metadata.name)?.stop()
      },
    })
  }
}

function grouped(pairs: readonly (readonly [string, string])[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>()
  for (const [key, value] of pairs) {
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [value])
    else group.push(value)
  }
  return groups
}

/** A NodePool of the KWOK provider restricted to linux and on-demand. */
export function aKwokPool(name = 'default', spec: Partial<NodePool['spec']> = {}): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      template: {
        spec: {
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
          requirements: [
            { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
            { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
          ],
        },
      },
      disruption: { consolidateAfter: '30s', budgets: [{ nodes: '100%' }] },
      ...spec,
    },
  }
}

interface DeploymentObject extends KubeObject {
  readonly spec: {
    readonly replicas: number
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> }
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> }
      readonly spec: PodSpec
    }
  }
}

/** A Deployment in the namespace `default` whose pods have these requests. */
export function aDeployment(
  name: string,
  replicas: number,
  requests: Readonly<Record<string, string>> = { cpu: '500m', memory: '512Mi' },
): DeploymentObject {
  const labels = { app: name }
  const object = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'app', image: 'registry.k8s.io/pause', resources: { requests } }] },
      },
    },
  }
  return object
}
