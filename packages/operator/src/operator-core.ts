/**
 * An operator without its controllers: caches, state, and what answers questions about them. Commands that only ask use it,
 * so that they do not load what acts (operator.ts).
 */
import { apiVersionOf, labels } from '@tenon/api'
import { type Clock, eventLoopTurns, type Runtime } from '@tenon/runtime'
import { type CacheRegistry, ClusterIdentity, type EventRecorder, type KubeClient } from '@tenon/kube'
import type { CloudProvider, SweepGuard } from '@tenon/provider'
import {
  type CapacityLearning,
  checkedPrices,
  correctedProvider,
  identifiedProvider,
  surchargedProvider,
} from './cloud/provider-layers.ts'
import { GroupDiscovery } from './extensions/podgroup/discovery.ts'
import { groupFigures } from './extensions/podgroup/standing.ts'
import { bufferFigures } from './extensions/capacitybuffer/figures.ts'
import { requestFigures } from './extensions/provisioningrequest/request-status.ts'
import { LaunchGuard } from './cloud/launch-guard.ts'
import { ZoneBalance } from './cloud/zone-balance.ts'
import { forgiveChanged } from './cloud/refusals.ts'
import { overlaidProvider, overlayLayer } from './nodeoverlay/overlaid-provider.ts'
import { DisruptionAnswers, type NodeDecision } from './disruption/answers.ts'
import { Journal } from './journal/journal.ts'
import { storedNodes, uselessAnnotation } from './nodepool/learned-annotations.ts'
import { OtherControllers } from './extensions/beside/other-controllers.ts'
import { noEvents, readingClient, readingProvider } from './extensions/observe/fences.ts'
import { PlacementGate } from './placement/gate.ts'
import { DecisionFaults } from './decide/decision-faults.ts'
import { IsolatingDecider } from './decide/isolating-decider.ts'
import type { SchedulingDecider } from './decide/decider.ts'
import { FrameworkMetrics, RequestMetrics } from './metrics/framework/framework.ts'
import { FollowedPods } from './metrics/cluster/followed-pods.ts'
import { type BufferFigures, type BuildInfo, Metrics, type OfferingTrouble } from './metrics/metrics.ts'
import { PassAges } from './metrics/waiting.ts'
import { type Caches, openCaches, servesDevices } from './state/caches.ts'
import { UnreadableObjects } from './state/readable.ts'
import { policyOf, type Settings } from './settings.ts'
import { ClusterState } from './state/cluster-state.ts'
import { LearnedCapacity } from './state/nodes/learned-capacity.ts'
import { claimSweepGuard } from './nodeclaim/garbage-collection.ts'
import { assemblyOf, type OperatorParts } from './composition/parts.ts'
import { questionsOf } from './composition/questions.ts'
import { type OperatorMemory, recall, rememberedBy } from './questions/memory.ts'
import type { Questions } from './questions/questions.ts'

/** What an operator runs on. */
export interface CoreDependencies {
  readonly kubernetes: OperatorApi
  readonly provider: CloudProvider
  /** Closed when the operator stops. */
  readonly decider: SchedulingDecider
  readonly runtime: Runtime
  readonly settings: Settings
  /** What the metrics say of this program. */
  readonly build?: BuildInfo
}

/** The Kubernetes API of an operator. */
interface OperatorApi {
  readonly client: KubeClient
  /** Caches not started yet; the operator adds its own and starts all of them. */
  readonly registry: CacheRegistry
  readonly events: EventRecorder
}

/** Why nothing may be happening. */
export interface Blockage {
  /** Types of objects whose first list has not arrived. */
  readonly caches: readonly string[]
  /** What the cloud is not known for yet, a clause without a full stop; absent when nothing is missing. */
  readonly provider?: string
  /** Claims and nodes that keep the state from being complete, as `nodeclaim/NAME` and `node/NAME`. */
  readonly objects: readonly string[]
  /** NodePools that decisions leave out until their claims are launched or gone. */
  readonly nodePools: readonly string[]
  /** How long work has been waiting for a complete pass, by controller. */
  readonly passAgesSeconds: Readonly<Record<string, number>>
}

/** Prices per hour of NodeClaims' instances, and of what CapacityBuffers keep; one that is not listed is not known. */
export interface ClaimPrices {
  /** Such as `EUR`; absent when the provider does not say. */
  readonly currency?: string
  readonly nodeClaims: readonly { readonly name: string; readonly pricePerHour: number }[]
  /** Absent without CapacityBuffers, and of a controller that did not tell of them yet. */
  readonly capacityBuffers?: readonly BufferFigures[]
}

/** `observe` may be called once, `stop` at any time after it. */
export class OperatorCore {
  readonly metrics: Metrics
  /** Told what controllers do, and whether this process leads. */
  readonly framework: FrameworkMetrics
  /** Told of requests to the API server. */
  readonly requests: RequestMetrics
  readonly caches: Caches
  readonly state: ClusterState
  /** Whether anything may be removed. */
  readonly identity: ClusterIdentity
  protected readonly deps: CoreDependencies
  /** Knows which offerings failed lately; where decisions are those of Karpenter, only by the provider's own word. */
  readonly launchGuard: LaunchGuard
  /** What instances really have; undefined where decisions are those of Karpenter. */
  readonly learnedCapacity: LearnedCapacity | undefined
  /** How long work has been waiting for a complete pass. */
  readonly passAges: PassAges
  /** What this operator has done while it leads. */
  readonly journal: Journal
  protected readonly claimSweep: SweepGuard
  /** Undefined if this process never stands back for another controller. */
  readonly others: OtherControllers | undefined
  readonly #decider: SchedulingDecider
  protected readonly unreadable: UnreadableObjects
  readonly #followedPods: FollowedPods
  /** Where nothing may be written, nowhere. */
  protected readonly events: EventRecorder
  protected readonly stopping = new AbortController()
  #parts: OperatorParts | undefined
  #questions: Questions | undefined
  /** Undefined until something is decided or asked. */
  protected learning: CapacityLearning | undefined
  #closed: Promise<void> | undefined

  constructor(deps: CoreDependencies) {
    this.deps = deps
    const { observeOnly } = deps.settings
    const { clock, logger } = deps.runtime
    this.others =
      observeOnly || !policyOf(deps.settings).standsBack
        ? undefined
        : new OtherControllers({
            clock,
            logger,
            settings: deps.settings,
            isServed: (object) => this.state.isManaged(object) || this.state.isUntaken(object),
          })
    const { events } = deps.kubernetes
    this.events = observeOnly ? noEvents : (this.others?.events(events) ?? events)
    this.unreadable = new UnreadableObjects(logger)
    this.caches = openCaches(
      deps.kubernetes.registry,
      deps.provider,
      deps.settings,
      this.unreadable.note,
      this.others?.seen,
    )
    const { provider, settings, build } = deps
    this.passAges = new PassAges(clock)
    this.journal = new Journal(clock, () => provider.currency?.())
    this.claimSweep = claimSweepGuard(clock)
    const { client } = deps.kubernetes
    this.identity = new ClusterIdentity({
      client: observeOnly ? readingClient(client) : client,
      events: this.events,
      clock,
      logger,
      settings: settings.identity,
    })
    const sweeps = [this.claimSweep, ...(provider.sweeps ?? [])]
    const isKnown = () => hasNodesOfPools(this.caches)
    for (const sweep of sweeps)
      sweep.gate = (wanted, present) => this.identity.refusalOfSweep(wanted, present, isKnown)
    const { learns } = policyOf(settings)
    this.launchGuard = new LaunchGuard(provider, clock, {
      learns,
      ...(learns && { zones: new ZoneBalance(this.caches) }),
    })
    forgiveChanged(this.launchGuard, this.caches)
    this.state = new ClusterState(this.caches, provider, clock, settings)
    this.#followedPods = new FollowedPods(this.caches.nodes, this.state, clock)
    this.metrics = new Metrics({
      clock,
      sources: {
        offeringTroubles: () => this.offerings(),
        buffers: () => bufferFigures(this.state),
        quotas: () => this.state.quotas.inputs(),
        requests: () => requestFigures(this.state),
        groups: () => groupFigures(this.caches, this.state),
        passAgesMs: () => this.passAges.agesMs(),
        sweeps,
        provider: provider.metrics ?? [],
      },
      ...(build && { build }),
      ...(settings.clusterStateObservability && {
        cluster: {
          detail: settings.metricsDetail,
          providerLabels: provider.wellKnownLabels,
          podFigures: this.#followedPods,
        },
      }),
    })
    this.others?.onChange((because) => {
      this.metrics.standingBack.set(because === undefined ? 0 : 1)
    })
    this.learnedCapacity = !learns ? undefined : new LearnedCapacity(this.caches, this.state, clock)
    this.learnedCapacity?.follow()
    this.requests = new RequestMetrics(this.metrics.registry)
    this.framework = new FrameworkMetrics(this.metrics.registry, clock)
    this.#decider = new IsolatingDecider({
      inner: deps.decider,
      clock,
      logger,
      events: this.events,
      faults: new DecisionFaults({ logger, metrics: this.metrics }),
    })
  }

  /** Starts watching. Resolves when every cache holds a complete list; rejects when `signal` aborts. */
  async observe(signal?: AbortSignal): Promise<void> {
    const { registry } = this.deps.kubernetes
    registry.start(this.stopping.signal)
    await this.synced(signal)
  }

  /** Resolves when every cache holds a complete list; rejects when `signal` aborts. */
  async synced(signal?: AbortSignal): Promise<void> {
    await this.deps.kubernetes.registry.synced(signal)
  }

  /** As far as this process may use it. */
  protected get usableProvider(): CloudProvider {
    const { provider, settings } = this.deps
    if (settings.observeOnly) return readingProvider(provider)
    return identifiedProvider(this.others?.provider(provider) ?? provider, this.identity)
  }

  /** Made when first asked for: it checks what the provider lists as soon as caches are open. */
  protected get assembled(): OperatorParts {
    this.#parts ??= this.#assemble()
    return this.#parts
  }

  #assemble(): OperatorParts {
    const { kubernetes, runtime, settings } = this.deps
    const { observeOnly } = settings
    const client = observeOnly
      ? readingClient(kubernetes.client)
      : (this.others?.client(kubernetes.client) ?? kubernetes.client)
    const { clock, random, logger } = runtime
    const provider = checkedPrices(this.usableProvider, logger)
    const overlays = overlayLayer(this.caches, provider)
    const beneath = overlays === undefined ? provider : overlaidProvider(provider, overlays.store)
    const learning: CapacityLearning | undefined = this.learnedCapacity && {
      capacity: this.learnedCapacity,
      provider: beneath,
    }
    this.learning = learning
    return {
      kubernetes: { client, caches: this.caches, events: this.events },
      identity: this.identity,
      others: this.others,
      state: this.state,
      cloud: {
        provider: surchargedProvider(
          learning === undefined ? beneath : correctedProvider(learning),
          (pool) => this.state.poolWishes(pool).pricePerNode ?? 0,
        ),
        launchGuard: this.launchGuard,
        ...(learning && { learning }),
        ...(overlays && { overlays }),
      },
      decisions: {
        decider: this.#decider,
        placementGate: new PlacementGate(client, settings, clock, logger),
        answers: new DisruptionAnswers(),
      },
      telemetry: {
        metrics: this.metrics,
        followedPods: this.#followedPods,
        framework: this.framework,
        passAges: this.passAges,
        journal: this.journal,
        tracer: runtime.tracer,
      },
      process: { clock, turns: eventLoopTurns, random, logger, settings },
    }
  }

  /** Answers what would be decided now; call it once the caches are filled. */
  questions(): Questions {
    this.#questions ??= questionsOf(assemblyOf(this.assembled))
    return this.#questions
  }

  /** What this process knows and no object says. */
  memory(): OperatorMemory {
    const { state, launchGuard } = this
    const pools = this.caches.nodePools.list().map(({ metadata }) => metadata.name)
    return {
      ...rememberedBy(state, pools, this.deps.runtime.clock.now()),
      offeringsOnTrial: launchGuard.onTrial(),
      groupVersions: state.podGroups.caches.map(({ type }) => apiVersionOf(type)),
      isSteering: this.assembled.decisions.placementGate.isOn,
    }
  }

  /**
   * Reads the groups of pods that the API server serves; call it once the caches are filled. One that leads does so by
   * itself.
   */
  async followGroups(signal: AbortSignal): Promise<void> {
    const { groupKinds } = this.caches
    if (groupKinds === undefined) return
    const { kubernetes, runtime } = this.deps
    const { client } = kubernetes
    await new GroupDiscovery(client, groupKinds, this.state, runtime.logger).run(signal)
    const { podGroups, requests } = this.state
    const { requests: ofRequests, podTemplates } = requests.caches ?? {}
    const caches = [...podGroups.caches, ofRequests, podTemplates]
    await Promise.all(caches.map(async (cache) => await cache?.synced(signal)))
  }

  /** Takes over what another process knew; call it once the caches are filled, and before anything is decided. */
  recall(memory: OperatorMemory): void {
    for (const { metadata } of this.caches.nodePools.list())
      for (const each of storedNodes(metadata.annotations?.[uselessAnnotation]))
        this.state.evidence.restore(each)
    recall(this.state, memory)
    this.launchGuard.putOnTrial(memory.offeringsOnTrial)
  }

  /** The cloud as it was given. */
  get provider(): CloudProvider {
    return this.deps.provider
  }

  /** With what is left to the cluster as it is there. */
  get settings(): Settings {
    const { settings } = this.deps
    const isSettled = settings.ignoreDraRequests || servesDevices(this.caches)
    return isSettled ? settings : { ...settings, ignoreDraRequests: true }
  }

  /** What the instance of each NodeClaim costs an hour, as far as that is known. */
  prices(): ClaimPrices {
    const { provider } = this.deps
    const currency = provider.currency?.()
    const nodeClaims = this.caches.nodeClaims.list().flatMap((claim) => {
      const pricePerHour = this.state.poolCosts.priceOf(claim)
      return pricePerHour === undefined ? [] : [{ name: claim.metadata.name, pricePerHour }]
    })
    const capacityBuffers = bufferFigures(this.state)
    return {
      ...(currency !== undefined && { currency }),
      nodeClaims,
      ...(capacityBuffers.length > 0 && { capacityBuffers }),
    }
  }

  /** Offerings that launches avoid because they had no capacity. */
  offerings(): readonly OfferingTrouble[] {
    return this.launchGuard.health.troubles(this.deps.runtime.clock.now())
  }

  /** Types of objects whose first list has not arrived. */
  get waitingFor(): readonly string[] {
    return this.deps.kubernetes.registry.waitingFor
  }

  /** How many objects have arrived of each of those types. */
  get arrivals(): ReadonlyMap<string, number> {
    return this.deps.kubernetes.registry.arrivals
  }

  /** What decisions wait for, or go on without. */
  blockage(): Blockage {
    const { state } = this
    const provider = this.deps.provider.waitsFor?.()
    return {
      caches: this.waitingFor,
      ...(provider !== undefined && { provider }),
      objects: state.waitingFor(),
      nodePools: [...state.stuckPools()].toSorted(),
      passAgesSeconds: Object.fromEntries(
        Array.from(this.passAges.agesMs(), ([name, ageMs]) => [name, ageMs / 1000]),
      ),
    }
  }

  /** Why each node is still there, as the process that leads knows it; nothing in any other. */
  decisions(): Promise<readonly NodeDecision[]> {
    return Promise.resolve([])
  }

  /** The journal, and the clock of its times. */
  get journaled(): { readonly journal: Journal; readonly clock: Clock } {
    return { journal: this.journal, clock: this.deps.runtime.clock }
  }

  /** Stops observing and deciding; {@link stop} also waits until a thread has ended. */
  quiesce(): Promise<void> {
    this.stopping.abort(new Error('the operator is stopping'))
    this.#closed ??= this.#decider.close()
    this.#closed.catch(toldByStop)
    return Promise.resolve()
  }

  async stop(): Promise<void> {
    await this.quiesce()
    await this.#closed
  }
}

function toldByStop(): void {}

/** Whether the cluster has a NodeClaim, or a Node of a NodePool. */
function hasNodesOfPools({ nodeClaims, nodes }: Pick<Caches, 'nodeClaims' | 'nodes'>): boolean {
  return (
    nodeClaims.size > 0 ||
    nodes.list().some(({ metadata }) => metadata.labels?.[labels.nodePool] !== undefined)
  )
}
