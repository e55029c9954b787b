/**
 * The process: serves, acquires the lease, runs the loop while it is the leader, and shuts down (cluster-autoscaler.md
 * 2.1).
 */
import {
  ClusterIdentity,
  createCacheRegistry,
  createEventRecorder,
  createKubeClient,
  fencedTransport,
  type FlushableEventRecorder,
  type KubeClientOptions,
  type LeaderElector,
  type WatchingKubeClient,
} from '@tenon/kube'
import {
  decorated,
  type NodeGroupDependencies,
  NodeGroupError,
  type NodeGroupModule,
  type NodeGroups,
} from '@tenon/provider'
import {
  type Clock,
  type HttpHandler,
  type Logger,
  type Random,
  type SocketServer,
  type Tracer,
  tracedTransport,
  type Transport,
  type Turns,
} from '@tenon/runtime'
import type { Autoscaler } from '../loop/autoscaler.ts'
import { type AutoscalerParts, createAutoscaler } from '../loop/create-autoscaler.ts'
import { Explanations } from '../status/explanations.ts'
import { LoopTrigger } from '../loop/triggers.ts'
import type { EventSink } from '../model.ts'
import { eventSource, priorityExpanderConfigMap } from '../names.ts'
import type { AutoscalerOptions } from '../options/options.ts'
import type { ProcessOptions } from '../options/process-options.ts'
import type { Expander } from '../scale-up/expanders.ts'
import { createEventSink, createLoggingEventSink } from '../status/event-sink.ts'
import { HealthCheck } from '../status/health-check.ts'
import { type AutoscalerMetrics, createMetrics } from '../status/metrics.ts'
import { requestCounting } from '../status/request-metrics.ts'
import { autoscalerPages } from '../status/pages.ts'
import { SnapshotzServer } from '../status/snapshotz.ts'
import { noStatusWriter, StatusConfigMap } from '../status/status-config-map.ts'
import { type ClusterCaches, openClusterCaches } from './cluster-caches.ts'
import { createClusterWriter, createDryRunWriter } from './cluster-writer.ts'
import { driveLoop } from './loop-driver.ts'
import { createUncachedReader } from './uncached-reader.ts'

/** How to reach the API server. */
export interface KubernetesConnection {
  readonly transport: Transport
  /** URL, for messages. */
  readonly server: string
}

/** Callbacks of the leader election. */
interface LeadershipHooks {
  readonly onStarted: () => void
  readonly onStopped: () => void
}

/** Everything that the process needs. */
export interface AutoscalerPlan {
  readonly options: AutoscalerOptions
  readonly process: ProcessOptions
  /** Each is logged once. */
  readonly warnings: readonly string[]
  readonly cloud: Pick<NodeGroupModule, 'open'>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly kubernetes: KubernetesConnection
  /** Where node groups are objects of another cluster: the management cluster. */
  readonly management?: KubernetesConnection
  /** Calls the server at `--grpc-expander-url`. */
  readonly grpcExpander?: Expander
  /** Creates the loop; replaced in tests. */
  readonly createLoop?: (
    parts: AutoscalerParts,
  ) => Pick<Autoscaler, 'runOnce' | 'lastChangeMs'> & Partial<Pick<Autoscaler, 'noteChange'>>
  /** Opens the port of `--address`; rejects if it is in use. */
  readonly serve: (handler: HttpHandler) => Promise<SocketServer>
  /** Adds metrics of the process itself; called once per operating system process. */
  readonly addProcessMetrics?: (registry: AutoscalerMetrics['registry']) => void
  /** With `--profiling`. */
  readonly profiles?: HttpHandler
  /** Creates the candidate for the lease; absent without leader election. */
  readonly elect?: (hooks: LeadershipHooks) => LeaderElector
  /** Holder of the lease: the host name. */
  readonly identity: string
  readonly userAgent: string
  readonly clock: Clock
  readonly random: Random
  readonly turns: Turns
  readonly logger: Logger
  /** Undefined: nothing is traced. */
  readonly tracer?: Tracer | undefined
}

/** Leadership ended unexpectedly; the process must exit. */
export class LeadershipLostError extends Error {
  constructor(lease: string) {
    super(`lost master: lease ${lease} is lost; another replica may lead, this one ends`)
    this.name = 'LeadershipLostError'
  }
}

/** Timeout of writes of ProvisioningRequests (gangs.md 1). */
const requestWriteTimeoutMs = 4000
const pageLimit = 1000
/** How often a leader reports what it waits for. */
const waitNoticeMs = 30_000
/** How long the shutdown waits for the status, the lease and the last events. */
const farewellMs = 1500
/** Events are already limited by reason and object. */
const eventsPerObject = { perSecond: 10, burst: 1000 }

/**
 * Runs until `signal` aborts, and then removes the status.
 * @throws LeadershipLostError; ProviderSettingError for a setting of the cloud; errors of the server.
 */
export async function runAutoscaler(plan: AutoscalerPlan, signal: AbortSignal): Promise<void> {
  const ending = new AbortController()
  const stop = () => {
    ending.abort(new Error('the process ends'))
  }
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  const autoscaler = new AutoscalerProcess(plan, ending)
  try {
    await autoscaler.run()
  } finally {
    signal.removeEventListener('abort', stop)
    stop()
    await autoscaler.close()
  }
}

class AutoscalerProcess {
  readonly #plan: AutoscalerPlan
  readonly #ending: AbortController
  readonly #health: HealthCheck
  readonly #metrics: AutoscalerMetrics
  readonly #snapshotz: SnapshotzServer
  readonly #explanations = new Explanations()
  readonly #counted: ReturnType<typeof requestCounting>
  readonly #client: WatchingKubeClient
  readonly #recorder: FlushableEventRecorder
  readonly #identity: ClusterIdentity
  readonly #status: StatusConfigMap | undefined
  #elector: LeaderElector | undefined
  #server: SocketServer | undefined
  #isLeading = false
  #isOver = false

  constructor(plan: AutoscalerPlan, ending: AbortController) {
    const { options, clock, logger, random, turns } = plan
    this.#plan = plan
    this.#ending = ending
    this.#health = new HealthCheck(options.status, clock)
    this.#metrics = createMetrics({ emitPerNodeGroup: options.status.emitPerNodeGroupMetrics })
    const { registry } = this.#metrics
    plan.addProcessMetrics?.(registry)
    this.#counted = requestCounting(registry, clock)
    this.#snapshotz = new SnapshotzServer(turns, ending.signal)
    this.#client = this.#newClient()
    const {
      namespace,
      statusConfigMapName: name,
      writeStatusConfigMap,
      recordDuplicatedEvents,
    } = options.status
    this.#recorder = createEventRecorder({
      client: this.#newClient(),
      clock,
      logger,
      random,
      component: eventSource,
      ...(!recordDuplicatedEvents && { perObject: eventsPerObject }),
    })
    this.#identity = new ClusterIdentity({
      client: this.#client,
      events: options.isDryRun ? { record: () => undefined } : this.#recorder,
      clock,
      logger,
      settings: {
        ...(this.#isCandidate && { lease: { namespace, name: plan.process.leaseName } }),
        writes: 'update',
        isAccepted: plan.process.acceptsClusterIdentity,
      },
    })
    if (writeStatusConfigMap && !options.isDryRun)
      this.#status = new StatusConfigMap({ client: this.#client, clock, logger, namespace, name })
  }

  async run(): Promise<void> {
    const { cloud, env, clock, random, logger, serve, userAgent, process, warnings } = this.#plan
    for (const warning of warnings) logger.warn(warning)
    const nodeGroups = cloud.open({
      env,
      clusters: this.#clusters(),
      discoverySpecs: process.discoverySpecs,
      anyMachinePoolVictim: process.anyMachinePoolVictim,
      nodeGroupSpecs: process.nodeGroupSpecs,
      allowsEmptyGroups: process.allowsEmptyGroups,
      runtime: { clock, random, logger },
      cloud: {
        fenced: (transport) =>
          tracedTransport(
            fencedTransport(transport, () => this.#mayAct()),
            this.#plan.tracer,
          ),
        userAgent,
      },
    })
    this.#server = await serve(this.#pages())
    logger.info('starting', {
      server: this.#plan.kubernetes.server,
      ...(this.#plan.management !== undefined && { managementCluster: this.#plan.management.server }),
      port: this.#server.port,
      identity: this.#plan.identity,
      dryRun: this.#plan.options.isDryRun,
    })
    try {
      const caches = await this.#openCaches()
      await caches.nodesListed(this.#ending.signal)
      await this.#lead(caches, nodeGroups)
    } catch (error) {
      if (!this.#ending.signal.aborted) throw error
    }
    // The reason may be the loss of the lease.
    const { reason } = this.#ending.signal as { readonly reason: unknown }
    if (reason instanceof LeadershipLostError) throw reason
  }

  /** Does not wait for a running loop, which can no longer change anything. */
  async close(): Promise<void> {
    const { clock } = this.#plan
    const farewell = new AbortController()
    const cancel = clock.after(farewellMs, () => {
      farewell.abort(new Error('there is no more time'))
    })
    if (this.#isLeading && !(this.#ending.signal.reason instanceof LeadershipLostError)) {
      const removed = Promise.resolve(this.#status?.remove(farewell.signal))
      await within(Promise.all([removed, this.#recorder.flush()]), farewell.signal)
    }
    this.#isOver = true
    await within(Promise.resolve(this.#elector?.stop()), farewell.signal)
    cancel()
    await this.#server?.close()
  }

  /** A dry run must not hold the lease. */
  get #isCandidate(): boolean {
    return this.#plan.elect !== undefined && !this.#plan.options.isDryRun
  }

  #mayAct(): boolean {
    if (this.#isOver || this.#plan.options.isDryRun) return false
    return !this.#isCandidate || this.#elector?.isLeader === true
  }

  #clusters(): NodeGroupDependencies['clusters'] {
    const { kubernetes, management } = this.#plan
    const workload = { client: this.#client, server: kubernetes.server }
    if (management === undefined) return { workload, management: workload }
    const client = this.#newClient({ cluster: management })
    return { workload, management: { client, server: management.server } }
  }

  #countedTo({ transport, server }: KubernetesConnection): Transport {
    return tracedTransport(this.#counted(transport, new URL(server).host), this.#plan.tracer, server)
  }

  #newClient({
    cluster = this.#plan.kubernetes,
    requestTimeoutMs,
  }: {
    readonly cluster?: KubernetesConnection
    readonly requestTimeoutMs?: number
  } = {}): WatchingKubeClient {
    const { process, clock, userAgent } = this.#plan
    const options: KubeClientOptions = {
      transport: fencedTransport(this.#countedTo(cluster), () => this.#mayAct()),
      clock,
      userAgent,
      // At five requests per second, smaller pages of a large cluster would take minutes.
      pageLimit,
      ...(process.rate !== undefined && { rate: process.rate }),
      ...(requestTimeoutMs !== undefined && { requestTimeoutMs }),
    }
    return createKubeClient(options)
  }

  #pages(): HttpHandler {
    const { process, profiles } = this.#plan
    return autoscalerPages({
      metrics: () => this.#metrics.registry.metrics(),
      health: this.#health,
      ...(process.servesSnapshots && { snapshotz: this.#snapshotz.handle }),
      ...(process.servesSnapshots && { explain: (about) => this.#explanations.of(about) }),
      ...(profiles !== undefined && { profiles }),
    })
  }

  async #openCaches(): Promise<ClusterCaches> {
    const { clock, random, logger, kubernetes, options } = this.#plan
    const needsPriorities = options.scaleUp.expanders.includes('priority')
    const follows = {
      services: options.loop.defaultConstraints.length > 0,
      requests: options.requests.isEnabled,
    }
    const registry = createCacheRegistry({ client: this.#client, clock, logger, random })
    return await openClusterCaches(
      {
        client: this.#client,
        transport: this.#countedTo(kubernetes),
        registry,
        runtime: { clock, random, logger },
        follows,
        configMap: needsPriorities
          ? { namespace: options.status.namespace, name: priorityExpanderConfigMap }
          : undefined,
      },
      this.#ending.signal,
    )
  }

  /** Resolves when the process ends. */
  async #lead(caches: ClusterCaches, nodeGroups: NodeGroups): Promise<void> {
    const { elect, options, process } = this.#plan
    if (elect === undefined || !this.#isCandidate) {
      await this.#runLoop(caches, nodeGroups)
      return
    }
    const started = Promise.withResolvers<void>()
    this.#elector = elect({
      onStarted: () => {
        started.resolve()
      },
      onStopped: () => {
        this.#ending.abort(new LeadershipLostError(`${options.status.namespace}/${process.leaseName}`))
      },
    })
    this.#elector.start()
    await within(started.promise, this.#ending.signal)
    if (!this.#ending.signal.aborted) await this.#runLoop(caches, nodeGroups)
  }

  async #runLoop(caches: ClusterCaches, nodeGroups: NodeGroups): Promise<void> {
    const { signal } = this.#ending
    this.#isLeading = true
    this.#health.start()
    await this.#status?.write({ kind: 'initializing', message: '' }, signal)
    await nodeGroups.start?.(signal)
    await this.#untilSynced(caches, signal)
    void this.#identity.follow(signal)
    const { clock, logger, options, createLoop = createAutoscaler } = this.#plan
    const autoscaler = createLoop(this.#partsOfLoop(caches, nodeGroups))
    const trigger = new LoopTrigger(options.loop, clock)
    const unsubscribes = [
      caches.podChanges.onChange((pod) => {
        trigger.observe(pod)
        autoscaler.noteChange?.(signal)
      }),
      caches.nodeChanges.onChange(() => autoscaler.noteChange?.(signal)),
    ]
    await driveLoop({ autoscaler, trigger, metrics: this.#metrics, clock, logger }, signal)
    for (const unsubscribe of unsubscribes) unsubscribe()
  }

  #partsOfLoop({ cache, cachedNode, relistPods }: ClusterCaches, nodeGroups: NodeGroups): AutoscalerParts {
    const { options, grpcExpander = keepAll, clock, random, turns, logger } = this.#plan
    const { isDryRun } = options
    const client = this.#client
    const reader = createUncachedReader(client, cache, cachedNode, relistPods)
    return {
      options,
      cluster: {
        cache,
        reader,
        listNodes: (signal) => reader.listNodes(signal),
        mayRemove: () => this.#identity.mayRemove(),
        writer: isDryRun
          ? createDryRunWriter(client, logger)
          : createClusterWriter({
              client,
              requestClient: this.#newClient({ requestTimeoutMs: requestWriteTimeoutMs }),
              clock,
            }),
      },
      nodeGroups: identifiedGroups(nodeGroups, this.#identity),
      reporting: {
        events: this.#newEvents(),
        metrics: this.#metrics,
        status: this.#status ?? noStatusWriter,
        health: this.#health,
        logger,
        debugging: { snapshotz: this.#snapshotz, explanations: this.#explanations },
        tracer: this.#plan.tracer,
      },
      capabilities: { clock, turns, random },
      grpcExpander,
    }
  }

  #newEvents(): EventSink {
    const { options, logger } = this.#plan
    if (options.isDryRun) return createLoggingEventSink(logger)
    return createEventSink({
      recorder: this.#recorder,
      statusObject: () => this.#status?.reference,
      recordsDuplicates: options.status.recordDuplicatedEvents,
    })
  }

  async #untilSynced(caches: ClusterCaches, signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#plan
    const notice = (): (() => void) =>
      clock.after(waitNoticeMs, () => {
        logger.warn('still waiting for the first list', { kinds: caches.waitingFor() })
        cancel = notice()
      })
    let cancel = notice()
    try {
      await caches.synced(signal)
    } finally {
      cancel()
    }
  }
}

/** Used if no gRPC expander is configured. */
const keepAll: Expander = (all) => Promise.resolve(all)

/** Resolves when `work` has settled, or the signal aborts. */
async function within(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = () => {
      signal.removeEventListener('abort', end)
      resolve()
    }
    if (signal.aborted) {
      resolve()
      return
    }
    signal.addEventListener('abort', end, { once: true })
    work.then(end, end)
  })
}

/** Prevents removals in a cluster that is not the known one (reports-2.md 2.2). */
function identifiedGroups(
  groups: NodeGroups,
  identity: Pick<ClusterIdentity, 'mayRemove' | 'refusal'>,
): NodeGroups {
  const assure = async () => {
    if (!(await identity.mayRemove())) throw new NodeGroupError(`no member is removed: ${identity.refusal}`)
  }
  return decorated<NodeGroups, NodeGroups>(groups, {
    deleteInstances: async (...args) => {
      await assure()
      await groups.deleteInstances(...args)
    },
    decreaseTargetSize: async (...args) => {
      await assure()
      return await groups.decreaseTargetSize(...args)
    },
  })
}
