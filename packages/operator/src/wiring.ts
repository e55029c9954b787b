/** Which controller listens to what; names, triggers and concurrency as in operations.md 7. */
import { type KubeObject, labels, type Node, type NodeClaim, type NodePool } from '@tenon/api'
import {
  type Cache,
  type Change,
  type Controller,
  createController,
  createSingleton,
  TurnPace,
  type ReconcileResult,
} from '@tenon/kube'
import { isExpectedFailure } from './cloud/expected-failures.ts'
import { guardedProvider } from './cloud/guarded-provider.ts'
import type { OperatorContext } from './context.ts'
import { Disruption } from './disruption/controller.ts'
import { NodeMetrics } from './metrics/cluster/nodes.ts'
import { NodePoolMetrics } from './metrics/cluster/nodepools.ts'
import { PodMetrics } from './metrics/cluster/pods.ts'
import { NodeHydration } from './node/hydration.ts'
import { NodeHealth } from './node/health/controller.ts'
import { isHealthChange } from './node/health/unhealthy.ts'
import { EvictionQueue } from './node/termination/eviction-queue.ts'
import { NodeTermination } from './node/termination/controller.ts'
import { NodeClaimConsistency } from './nodeclaim/consistency.ts'
import { DisruptionConditions } from './nodeclaim/disruption/disruption-conditions.ts'
import { NodeClaimExpiration } from './nodeclaim/expiration.ts'
import { NodeClaimGarbageCollection } from './nodeclaim/garbage-collection.ts'
import { NodeClaimHydration } from './nodeclaim/hydration.ts'
import { PodEvents } from './nodeclaim/pod-events.ts'
import { NodeClaimLifecycle } from './nodeclaim/lifecycle/controller.ts'
import { NodeOverlayController } from './nodeoverlay/controller.ts'
import { NodePoolCounter } from './nodepool/counter.ts'
import { NodePoolHash } from './nodepool/hash.ts'
import { NodePoolLearning } from './nodepool/learning.ts'
import { NodePoolRollout } from './nodepool/rollout.ts'
import { NodePoolReadiness } from './nodepool/readiness.ts'
import { NodePoolRegistrationHealth } from './nodepool/registration-health.ts'
import { Nominator } from './placement/nominator.ts'
import { resumePlans } from './placement/planned-pods.ts'
import { Provisioner } from './provisioning/provisioner.ts'
import { seedCheckMs, StateNodeClaimGC } from './nodeclaim/seed-check.ts'
import { StaticDeprovisioning } from './nodepool/static/deprovisioning.ts'
import { StaticProvisioning } from './nodepool/static/provisioning.ts'
import { isNowLeaving, isNowReady, isResized, staticPoolOf } from './nodepool/static/static-pool.ts'
import { PoolPricing } from './nodepool/pricing.ts'
import { reportSync } from './metrics/sync-report.ts'
import { statusControllers } from './metrics/conditions/kinds.ts'
import { measuredDecider } from './decider/measured-decider.ts'
import { measuredProvider } from './cloud/measured-provider.ts'
import { type Caches, indexes, nodeNamesOf } from './cluster/caches.ts'
import { isOfItsLife } from './cluster/nodes/claim-changes.ts'
import { isSameValue } from './cluster/same-value.ts'
import { describedBy } from './log-context.ts'
import { scaledConcurrency } from './settings.ts'

/** A controller or loop that can be started once and stopped once. */
export interface Runnable {
  readonly name: string
  start(): void
  stop(): Promise<void>
}

interface LoopOptions {
  readonly least: number
  readonly most: number
  readonly baseMs?: number
  readonly capMs?: number
  readonly perSecond?: number
}

type NewQueue = (
  name: string,
  options: LoopOptions,
  reconcile: (key: string, signal: AbortSignal) => Promise<ReconcileResult>,
) => Controller

/** Nodes come by the dozen. */
const learningPauseMs = 1000

const wide: LoopOptions = { least: 10, most: 1000 }

/** Builds every controller and connects it to the caches. Nothing runs before `start`. */
export function wireControllers(context: OperatorContext): readonly Runnable[] {
  const { clock, settings, caches } = context
  const deps = { ...loopDependencies(context), pace: new TurnPace(clock) }
  const queue: NewQueue = (name, { least, most, baseMs = 5, capMs = 1_000_000, perSecond }, reconcile) => {
    const concurrency = scaledConcurrency(least, most, settings.cpuRequestsMillis)
    const describe = describedBy(name)
    const qps = perSecond === undefined ? undefined : Math.ceil((concurrency * perSecond) / least)
    return createController(
      {
        name,
        concurrency,
        backoff: { baseMs, capMs },
        ...(qps !== undefined && { rate: { perSecond: qps, burst: 10 * qps } }),
        ...(describe !== undefined && { describe }),
        reconcile,
      },
      deps,
    )
  }
  const singleton = (name: string, run: (signal: AbortSignal) => Promise<ReconcileResult>): Runnable =>
    createSingleton({ name, run, ...deps })

  reportSync(context)
  const lifecycle = new NodeClaimLifecycle(measured(context, 'nodeclaim.lifecycle'))
  const evictions = new EvictionQueue(context)
  const termination = new NodeTermination(measured(context, 'node.termination'), evictions)
  const disruptionConditions = new DisruptionConditions(measured(context, 'nodeclaim.disruption'))
  const expiration = new NodeClaimExpiration(context)
  const hydration = new NodeClaimHydration(context)
  const podEvents = new PodEvents(context)
  const garbageCollection = new NodeClaimGarbageCollection(measured(context, 'nodeclaim.garbagecollection'))
  context.metrics.sweeps = () => [garbageCollection.guard, ...(context.provider.sweeps ?? [])]
  const counter = new NodePoolCounter(context)
  const provisioner = new Provisioner(measured(context, 'provisioner'))

  const lifecycleQueue = queue(
    'nodeclaim.lifecycle',
    { least: 1000, most: 5000, baseMs: 1000, capMs: 60_000, perSecond: 10 },
    (key, signal) => lifecycle.reconcile(key, signal),
  )
  lifecycle.enqueue = (name, afterMs) => {
    lifecycleQueue.enqueue(name, afterMs)
  }
  const terminationQueue = queue(
    'node.termination',
    { least: 100, most: 5000, baseMs: 100, capMs: 10_000, perSecond: 10 },
    (key, signal) => termination.reconcile(key, signal),
  )
  const evictionQueue = queue(
    'eviction-queue',
    { least: 100, most: 5000, baseMs: 100, capMs: 10_000, perSecond: 100 },
    (key, signal) => evictions.reconcile(key, signal),
  )
  evictions.enqueue = (key) => {
    evictionQueue.enqueue(key)
  }
  const disruptionQueue = queue('nodeclaim.disruption', wide, (key, signal) =>
    disruptionConditions.reconcile(key, signal),
  )
  const expirationQueue = queue('nodeclaim.expiration', { least: 1, most: 1 }, (key) =>
    expiration.reconcile(key),
  )
  const hydrationQueue = queue(
    'nodeclaim.hydration',
    { least: 1000, most: 5000, baseMs: 100, capMs: 60_000 },
    (key) => hydration.reconcile(key),
  )
  const podEventQueue = queue('nodeclaim.podevents', { least: 1, most: 1 }, (key) => podEvents.reconcile(key))

  followClaims(caches, disruptionQueue, [lifecycleQueue, expirationQueue, hydrationQueue])
  caches.nodes.onChange((change) => {
    if (change.object.metadata.deletionTimestamp !== undefined)
      terminationQueue.enqueue(change.object.metadata.name)
    if (!isWorthLooking(change)) return
    for (const name of claimNames(caches, change.object)) lifecycleQueue.enqueue(name)
  })
  caches.resourceSlices?.onChange((change) => {
    for (const name of nodeNamesOf(change.object)) {
      const node = caches.nodes.get({ name })
      for (const claim of node === undefined ? [] : claimNames(caches, node)) lifecycleQueue.enqueue(claim)
    }
  })
  caches.pods.onChange((change) => {
    const node = podEvents.note(change)
    if (node !== undefined) podEventQueue.enqueue(node)
  })
  caches.nodePools.onChange((change) => {
    if (!mayCauseDrift(change)) return
    for (const claim of caches.nodeClaims.byIndex(indexes.byNodePool, change.object.metadata.name))
      disruptionQueue.enqueue(claim.metadata.name)
  })
  for (const cache of context.caches.nodeClasses) {
    onChange(cache, (name) => {
      for (const claim of caches.nodeClaims.list()) {
        if (claim.spec.nodeClassRef.name === name) disruptionQueue.enqueue(claim.metadata.name)
      }
    })
  }
  return [
    lifecycleQueue,
    terminationQueue,
    evictionQueue,
    disruptionQueue,
    expirationQueue,
    hydrationQueue,
    nodeHydrationQueue(context, queue),
    consistencyQueue(context, queue),
    ...repairQueues(context, queue),
    ...overlayQueues(context, queue),
    ...staticQueues(context, queue),
    seedQueue(context, queue),
    podEventQueue,
    nominationQueue(context, queue),
    ...poolQueues(context, queue),
    ...pricingLoops(context, queue, singleton),
    ...metricLoops(context, singleton),
    ...statusQueues(context, queue),
    singleton('nodeclaim.garbagecollection', (signal) => garbageCollection.run(signal)),
    singleton('nodepool.counter', () => counter.run()),
    ...disruptionLoops(context, queue, singleton, evictions),
    loop('provisioner', (signal) => provisioner.run(signal)),
  ]
}

/** @param life what is about more than the pods that come and go. */
function followClaims(caches: Caches, disruption: Controller, life: readonly Controller[]): void {
  caches.nodeClaims.onChange((change) => {
    const { name } = change.object.metadata
    disruption.enqueue(name)
    if (isOfItsLife(change)) for (const controller of life) controller.enqueue(name)
  })
}

/** What all controllers and loops work with. */
function loopDependencies({ clock, logger, random, framework }: OperatorContext) {
  return { clock, logger, random, metrics: framework, isExpected: isExpectedFailure }
}

/** Names of the claims of a Node. */
function claimNames(caches: Caches, node: Node): readonly string[] {
  return caches.nodeClaims
    .byIndex(indexes.byProviderId, node.spec?.providerID ?? '')
    .map((claim: NodeClaim) => claim.metadata.name)
}

function consistencyQueue(context: OperatorContext, queue: NewQueue): Controller {
  const { caches } = context
  const consistency = new NodeClaimConsistency(context)
  const controller = queue('nodeclaim.consistency', wide, (key) => consistency.reconcile(key))
  caches.nodeClaims.onChange((change) => {
    if (isOfItsLife(change)) controller.enqueue(change.object.metadata.name)
  })
  caches.nodes.onChange((change) => {
    if (!isWorthLooking(change)) return
    for (const name of claimNames(caches, change.object)) controller.enqueue(name)
  })
  return controller
}

/** The queue of Nodes that may lack the label of their node class. */
function nodeHydrationQueue(context: OperatorContext, queue: NewQueue): Controller {
  const { caches, state } = context
  const hydration = new NodeHydration(context)
  const options = { least: 1000, most: 5000, baseMs: 100, capMs: 60_000, perSecond: 10 }
  const controller = queue('node.hydration', options, (key) => hydration.reconcile(key))
  caches.nodes.onChange((change) => {
    if (isWorthLooking(change)) controller.enqueue(change.object.metadata.name)
  })
  caches.nodeClaims.onChange((change) => {
    const node = isOfItsLife(change) ? state.nodeOf(change.object) : undefined
    if (node !== undefined) controller.enqueue(node.metadata.name)
  })
  return controller
}

/** The queue of Nodes that may have to be replaced; none without the feature gate or policies. */
function repairQueues(context: OperatorContext, queue: NewQueue): readonly Controller[] {
  const { caches, provider, settings } = context
  if (!settings.featureGates.nodeRepair || provider.repairPolicies.length === 0) return []
  const health = new NodeHealth(context)
  const options = { ...wide, baseMs: 100, capMs: 60_000, perSecond: 10 }
  const controller = queue('node.health', options, (key) => health.reconcile(key))
  caches.nodes.onChange((change) => {
    if (isHealthChange(change)) controller.enqueue(change.object.metadata.name)
  })
  return [controller]
}

function seedQueue(context: OperatorContext, queue: NewQueue): Controller {
  const seedCheck = new StateNodeClaimGC(context)
  const controller = queue('state.nodeclaimgc', { least: 1, most: 1 }, (key, signal) =>
    seedCheck.reconcile(key, signal),
  )
  context.state.onSeed = (name) => {
    controller.enqueue(name, seedCheckMs)
  }
  return controller
}

function nominationQueue(context: OperatorContext, queue: NewQueue): Controller {
  const nominator = new Nominator(context)
  const controller = queue(
    'pod.nomination',
    // What the client's default rate lets through while an answer takes 100 ms; each needs a connection of its own.
    { least: 20, most: 500, baseMs: 100, capMs: 10_000 },
    (key, signal) => nominator.reconcile(key, signal),
  )
  nominator.enqueue = (uid) => {
    controller.enqueue(uid)
  }
  nominator.follow()
  resumePlans(context)
  return controller
}

/** The queues of NodePools; all but the hash follow the node classes too. */
function poolQueues(context: OperatorContext, queue: NewQueue): readonly Controller[] {
  const { caches, state } = context
  const hash = new NodePoolHash(context)
  const readiness = new NodePoolReadiness(context)
  const registrationHealth = new NodePoolRegistrationHealth(context)
  const hashQueue = queue('nodepool.hash', wide, (key) => hash.reconcile(key))
  const readinessQueue = queue('nodepool.readiness', wide, (key) => readiness.reconcile(key))
  const healthQueue = queue('nodepool.registrationhealth', wide, (key) => registrationHealth.reconcile(key))
  state.registrationHealth.onSample = (pool) => {
    healthQueue.enqueue(pool)
  }
  onChange(caches.nodePools, (name) => {
    for (const controller of [hashQueue, readinessQueue, healthQueue]) controller.enqueue(name)
  })
  for (const cache of caches.nodeClasses) {
    onChange(cache, (name) => {
      for (const pool of caches.nodePools.list()) {
        if (pool.spec.template.spec.nodeClassRef.name !== name) continue
        for (const controller of [readinessQueue, healthQueue]) controller.enqueue(pool.metadata.name)
      }
    })
  }
  return [
    hashQueue,
    readinessQueue,
    healthQueue,
    rolloutQueue(context, queue),
    ...learningQueues(context, queue),
  ]
}

/** The queue of what NodePools say of the replacement of their drifted nodes. */
function rolloutQueue(context: OperatorContext, queue: NewQueue): Controller {
  const { caches, state } = context
  const rollout = new NodePoolRollout(context)
  const controller = queue('nodepool.rollout', wide, (key) => rollout.reconcile(key))
  state.rollouts.onChange = (name) => {
    controller.enqueue(name)
  }
  onChange(caches.nodePools, (name) => {
    controller.enqueue(name)
  })
  return controller
}

/** The queue of what NodePools remember of their nodes; none where decisions are those of Karpenter. */
function learningQueues(context: OperatorContext, queue: NewQueue): readonly Controller[] {
  const { caches, state, learning } = context
  if (learning === undefined) return []
  const memory = new NodePoolLearning(context)
  // Before anything is decided.
  for (const pool of caches.nodePools.list()) memory.restore(pool)
  const controller = queue('nodepool.learning', wide, (key, signal) => memory.reconcile(key, signal))
  onChange(caches.nodePools, (name) => {
    controller.enqueue(name)
  })
  state.evidence.onChange = (name) => {
    controller.enqueue(name)
  }
  learning.capacity.onChange = () => {
    for (const { metadata } of caches.nodePools.list()) controller.enqueue(metadata.name, learningPauseMs)
  }
  return [controller]
}

/** What keeps the costs of NodePools up to date. */
function pricingLoops(
  context: OperatorContext,
  queue: NewQueue,
  singleton: (name: string, run: (signal: AbortSignal) => Promise<ReconcileResult>) => Runnable,
): readonly Runnable[] {
  const { caches, state } = context
  const pricing = new PoolPricing(measured(context, 'state.pricing'))
  const controller = queue('state.nodeclaim', { least: 10, most: 3000 }, (key, signal) =>
    pricing.reconcile(key, signal),
  )
  caches.nodeClaims.onChange(({ kind, object }) => {
    if (kind !== 'deleted' && state.poolCosts.lacksPrice(object))
      controller.enqueue(object.metadata.labels?.[labels.nodePool] ?? '')
  })
  onChange(caches.nodePools, (name) => {
    controller.enqueue(name)
  })
  return [controller, singleton('state.pricing', (signal) => pricing.refresh(signal))]
}

/** What shows the state of the cluster; none without the setting. */
function metricLoops(
  context: OperatorContext,
  singleton: (name: string, run: (signal: AbortSignal) => Promise<ReconcileResult>) => Runnable,
): readonly Runnable[] {
  const { cluster } = context.metrics
  if (cluster === undefined) return []
  const pods = new PodMetrics(context, cluster)
  const nodes = new NodeMetrics(context, cluster)
  const pools = new NodePoolMetrics(context, cluster)
  return [
    singleton('metrics.pod', () => pods.run()),
    singleton('metrics.node', () => nodes.run()),
    singleton('metrics.nodepool', () => pools.run()),
  ]
}

/** The queues that tell how the conditions of objects change; none without the setting. */
function statusQueues(context: OperatorContext, queue: NewQueue): readonly Controller[] {
  if (!context.settings.clusterStateObservability) return []
  return Array.from(statusControllers(context), ([name, status]) => {
    const controller = queue(name, { least: 10, most: 10 }, (key) => status.reconcile(key))
    status.follow((object) => {
      controller.enqueue(object)
    })
    return controller
  })
}

/** What removes and replaces nodes. */
function disruptionLoops(
  context: OperatorContext,
  queue: NewQueue,
  singleton: (name: string, run: (signal: AbortSignal) => Promise<ReconcileResult>) => Runnable,
  evictions: Pick<EvictionQueue, 'add'>,
): readonly Runnable[] {
  const disruption = new Disruption({
    ...measured(context, 'disruption'),
    decider: measuredDecider(context.decider, 'disruption', context),
  })
  const { commands } = disruption
  const controller = queue('disruption.queue', { least: 100, most: 1000 }, (id) => commands.reconcile(id))
  commands.enqueue = (id) => {
    controller.enqueue(id)
  }
  commands.evict = (pods) => {
    evictions.add(pods, Number.POSITIVE_INFINITY)
  }
  const { passAges, state } = context
  const pass = async (signal: AbortSignal): Promise<ReconcileResult> => {
    passAges.waiting('disruption')
    const result = await disruption.run(signal)
    if (result.kind !== 'backoff' && state.waitingFor().length === 0) passAges.complete('disruption')
    passAges.waiting('disruption')
    return result
  }
  return [controller, singleton('disruption', pass)]
}

/** The queues that keep static NodePools at their size; none without the feature gate. */
function staticQueues(context: OperatorContext, queue: NewQueue): readonly Controller[] {
  const { caches, settings } = context
  if (!settings.featureGates.staticCapacity) return []
  const provisioning = new StaticProvisioning(context)
  const deprovisioning = new StaticDeprovisioning(context)
  const ten = { least: 10, most: 10 }
  const more = queue('static.provisioning', ten, (key, signal) => provisioning.reconcile(key, signal))
  const fewer = queue('static.deprovisioning', ten, (key, signal) => deprovisioning.reconcile(key, signal))
  caches.nodePools.onChange((change) => {
    const { name } = change.object.metadata
    if (isResized(change)) fewer.enqueue(name)
    if (isResized(change) || isNowReady(change)) more.enqueue(name)
  })
  caches.nodeClaims.onChange((change) => {
    const pool = staticPoolOf(context, change.object)
    if (pool === undefined) return
    if (change.kind === 'added') fewer.enqueue(pool)
    if (isNowLeaving(change)) more.enqueue(pool)
  })
  return [more, fewer]
}

/** The queue of the one key that evaluates all overlays; none without the feature gate. */
function overlayQueues(context: OperatorContext, queue: NewQueue): readonly Controller[] {
  if (context.overlays === undefined) return []
  const provider = measuredProvider(context.overlays.provider, 'nodeoverlay.controller', context)
  const overlays = new NodeOverlayController(context, { ...context.overlays, provider })
  const options = { least: 1, most: 1, baseMs: 100, capMs: 60_000, perSecond: 10 }
  const overlayQueue = queue('nodeoverlay.controller', options, (_, signal) => overlays.reconcile(signal))
  const evaluate = () => {
    overlayQueue.enqueue('all')
  }
  overlays.follow(evaluate)
  evaluate()
  return [overlayQueue]
}

/** The context of one controller, whose calls to the cloud are measured under its name. */
function measured(context: OperatorContext, controller: string): OperatorContext {
  const { caches, launchGuard, learning } = context
  const provider = measuredProvider(context.provider, controller, context)
  if (launchGuard === undefined) return { ...context, provider }
  return {
    ...context,
    provider: guardedProvider(
      provider,
      // A provider makes a machine of what it sells, whatever such machines turned out to have.
      learning?.provider ?? context.provider,
      launchGuard,
      caches.nodePools,
    ),
  }
}

function onChange<T extends KubeObject>(cache: Cache<T>, listener: (name: string) => void): void {
  cache.onChange((change) => {
    listener(change.object.metadata.name)
  })
}

/** Heartbeats change nothing that a claim's lifecycle looks at. */
function isWorthLooking(
  change: Parameters<Parameters<OperatorContext['caches']['nodes']['onChange']>[0]>[0],
): boolean {
  if (change.kind !== 'updated') return true
  const { object, old } = change
  const ready = (node: Node) =>
    node.status?.conditions?.find((condition) => condition.type === 'Ready')?.status
  return (
    ready(object) !== ready(old) ||
    !isSameValue(object.spec, old.spec) ||
    !isSameValue(object.metadata.labels, old.metadata.labels) ||
    !isSameValue(object.metadata.finalizers, old.metadata.finalizers) ||
    !isSameValue(object.status?.allocatable, old.status?.allocatable) ||
    object.metadata.deletionTimestamp !== old.metadata.deletionTimestamp
  )
}

/** Counters and conditions of a NodePool say nothing about its claims, each of which would ask the cloud. */
function mayCauseDrift(change: Change<NodePool>): boolean {
  if (change.kind !== 'updated') return true
  const { object, old } = change
  return (
    !isSameValue(object.spec, old.spec) || !isSameValue(object.metadata.annotations, old.metadata.annotations)
  )
}

function loop(name: string, run: (signal: AbortSignal) => Promise<void>): Runnable {
  const stopping = new AbortController()
  let running: Promise<void> = Promise.resolve()
  return {
    name,
    start() {
      running = run(stopping.signal)
    },
    async stop() {
      stopping.abort(new Error(`${name} is stopping`))
      await running.catch(() => undefined)
    },
  }
}
