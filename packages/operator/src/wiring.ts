/** Which controller listens to what; names, triggers and concurrency as in operations.md 7. */
import { type KubeObject, type Node, type NodeClaim } from '@tenon/api'
import {
  type Cache,
  type Controller,
  createController,
  createSingleton,
  type ReconcileResult,
} from '@tenon/kube'
import type { OperatorContext } from './context.ts'
import { Emptiness } from './controllers/disruption/emptiness.ts'
import { EvictionQueue } from './controllers/node-termination/eviction-queue.ts'
import { NodeTermination } from './controllers/node-termination/controller.ts'
import { DisruptionConditions } from './controllers/nodeclaim/disruption-conditions.ts'
import { NodeClaimExpiration } from './controllers/nodeclaim/expiration.ts'
import { NodeClaimGarbageCollection } from './controllers/nodeclaim/garbage-collection.ts'
import { NodeClaimHydration } from './controllers/nodeclaim/hydration.ts'
import { isPodEvent, PodEvents } from './controllers/nodeclaim/pod-events.ts'
import { NodeClaimLifecycle } from './controllers/nodeclaim-lifecycle/controller.ts'
import { NodePoolCounter } from './controllers/nodepool/counter.ts'
import { NodePoolHash } from './controllers/nodepool/hash.ts'
import { NodePoolReadiness } from './controllers/nodepool/readiness.ts'
import { Provisioner } from './controllers/provisioner.ts'
import { indexes } from './observe/caches.ts'
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

/** Builds every controller and connects it to the caches. Nothing runs before `start`. */
export function wireControllers(context: OperatorContext): readonly Runnable[] {
  const { clock, logger, random, settings, caches } = context
  const queue = (
    name: string,
    { least, most, baseMs = 5, capMs = 1_000_000, perSecond }: LoopOptions,
    reconcile: (key: string, signal: AbortSignal) => Promise<ReconcileResult>,
  ): Controller => {
    const concurrency = scaledConcurrency(least, most, settings.cpuRequestsMillis)
    const qps = perSecond === undefined ? undefined : Math.ceil((concurrency * perSecond) / least)
    return createController(
      {
        name,
        concurrency,
        backoff: { baseMs, capMs },
        ...(qps !== undefined && { rate: { perSecond: qps, burst: 10 * qps } }),
        reconcile,
      },
      { clock, logger, random },
    )
  }
  const singleton = (name: string, run: (signal: AbortSignal) => Promise<ReconcileResult>): Runnable =>
    createSingleton({ name, run, clock, logger, random })

  const lifecycle = new NodeClaimLifecycle(context)
  const evictions = new EvictionQueue(context)
  const termination = new NodeTermination(context, evictions)
  const disruptionConditions = new DisruptionConditions(context)
  const expiration = new NodeClaimExpiration(context)
  const hydration = new NodeClaimHydration(context)
  const podEvents = new PodEvents(context)
  const hash = new NodePoolHash(context)
  const readiness = new NodePoolReadiness(context)
  const garbageCollection = new NodeClaimGarbageCollection(context)
  const counter = new NodePoolCounter(context)
  const emptiness = new Emptiness(context)
  const provisioner = new Provisioner(context)

  const wide = { least: 10, most: 1000 }
  const lifecycleQueue = queue(
    'nodeclaim.lifecycle',
    { least: 1000, most: 5000, baseMs: 1000, capMs: 60_000, perSecond: 10 },
    (key, signal) => lifecycle.reconcile(key, signal),
  )
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
  const hashQueue = queue('nodepool.hash', wide, (key) => hash.reconcile(key))
  const readinessQueue = queue('nodepool.readiness', wide, (key) => readiness.reconcile(key))

  const claimNames = (node: Node): readonly string[] =>
    caches.nodeClaims
      .byIndex(indexes.byProviderId, node.spec?.providerID ?? '')
      .map((claim: NodeClaim) => claim.metadata.name)

  onChange(caches.nodeClaims, (name) => {
    for (const controller of [lifecycleQueue, disruptionQueue, expirationQueue, hydrationQueue])
      controller.enqueue(name)
  })
  caches.nodes.onChange((change) => {
    if (change.object.metadata.deletionTimestamp !== undefined)
      terminationQueue.enqueue(change.object.metadata.name)
    if (!isWorthLooking(change)) return
    for (const name of claimNames(change.object)) {
      lifecycleQueue.enqueue(name)
      hydrationQueue.enqueue(name)
    }
  })
  caches.pods.onChange((change) => {
    if (isPodEvent(change)) podEventQueue.enqueue(change.object.spec.nodeName ?? '')
  })
  onChange(caches.nodePools, (name) => {
    hashQueue.enqueue(name)
    readinessQueue.enqueue(name)
    for (const claim of caches.nodeClaims.byIndex(indexes.byNodePool, name))
      disruptionQueue.enqueue(claim.metadata.name)
  })
  for (const cache of context.caches.nodeClasses) {
    onChange(cache, (name) => {
      for (const pool of caches.nodePools.list()) {
        if (pool.spec.template.spec.nodeClassRef.name === name) readinessQueue.enqueue(pool.metadata.name)
      }
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
    podEventQueue,
    hashQueue,
    readinessQueue,
    singleton('nodeclaim.garbagecollection', (signal) => garbageCollection.run(signal)),
    singleton('nodepool.counter', () => counter.run()),
    singleton('disruption', (signal) => emptiness.run(signal)),
    loop('provisioner', (signal) => provisioner.run(signal)),
  ]
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
    JSON.stringify(object.spec) !== JSON.stringify(old.spec) ||
    JSON.stringify(object.metadata.labels) !== JSON.stringify(old.metadata.labels) ||
    JSON.stringify(object.status?.allocatable) !== JSON.stringify(old.status?.allocatable) ||
    object.metadata.deletionTimestamp !== old.metadata.deletionTimestamp
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
