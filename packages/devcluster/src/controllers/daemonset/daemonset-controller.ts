import { kinds, type Node, type Pod, type PodSpec, matchesSelector } from '@tenon/api'
import type { ControllerContext } from '../context.ts'
import { type Index, keyOf, namespaceOf, type ObjectCache, splitKey } from '../loop/object-cache.ts'
import type { Outcome, Steps, WorkQueue } from '../loop/reconcile-loop.ts'
import { claimAmong, followDependents, indexByController } from '../objects/owners.ts'
import { createPod, deletePod } from '../objects/pod-factory.ts'
import { availableInMs, isTerminating } from '../objects/pods.ts'
import { dropRevisions, revisionHashLabel, syncRevisions } from '../objects/revision-history.ts'
import { isEmptySelector } from '../objects/selectors.ts'
import { type ControllerRevision, type DaemonSetObject, workloads } from '../objects/workloads.ts'
import { type DaemonEligibility, daemonPod, EligibleNodes } from './daemon-pod.ts'
import { type DaemonPods, DaemonPodsBySet, oldestFirst } from './daemon-pods.ts'
import { rolloutStep } from './daemonset-rollout.ts'

const component = 'daemonset-controller'
const writesPerStep = 8
const firstFailureBackoffMs = 1_000
const lastFailureBackoffMs = 900_000

/** Runs one pod on every eligible node. */
export function daemonSets(context: ControllerContext): void {
  const { store } = context
  const cache = store.cache(workloads.daemonSet)
  const byNamespace = cache.index(namespaceOf)
  const nodes = store.cache(kinds.node)
  const pods = store.cache(kinds.pod)
  const podsByOwner = indexByController(pods)
  const revisionsByOwner = indexByController(store.cache(workloads.controllerRevision))
  const podsBySet = new DaemonPodsBySet(pods, podsByOwner)
  const failures = new Map<string, { count: number; untilMs: number }>()
  const eligibleNodes = new EligibleNodes()
  const queue = context.loop.queue('daemonsets', (key) => {
    const { namespace, name } = splitKey(key)
    const set = store.get(workloads.daemonSet, namespace, name)
    if (set === undefined || isEmptySelector(set.spec.selector)) return undefined
    const environment = { context, nodes, eligibleNodes, podsByOwner, podsBySet, revisionsByOwner, failures }
    return new DaemonSetReconcile(environment, set).run()
  })
  cache.onChange((now, before) => {
    if (now !== undefined) queue.add(keyOf(now))
    else podsBySet.forget(before?.metadata.uid ?? '')
  })
  followNodes(nodes, cache, { queue, eligibleNodes })
  followDependents(
    pods,
    'DaemonSet',
    (namespace, name) => queue.add(`${namespace}/${name}`),
    (orphan) => {
      for (const set of byNamespace.of(orphan.metadata.namespace ?? '')) {
        if (matchesSelector(set.spec.selector, orphan.metadata.labels)) queue.add(keyOf(set))
      }
    },
  )
}

/** Only changes that may affect eligibility trigger a reconcile, not heartbeats. */
function followNodes(
  nodes: ObjectCache<Node>,
  sets: ObjectCache<DaemonSetObject>,
  { queue, eligibleNodes }: { readonly queue: WorkQueue; readonly eligibleNodes: EligibleNodes },
): void {
  nodes.onChange((now, before) => {
    const relevant =
      now === undefined ||
      before === undefined ||
      now.metadata.labels !== before.metadata.labels ||
      now.spec?.taints !== before.spec?.taints
    if (!relevant) return
    eligibleNodes.nodesChanged()
    for (const set of sets.values()) {
      const was = before === undefined ? undefined : eligibleNodes.of(set, before)
      const is = now === undefined ? undefined : eligibleNodes.of(set, now)
      if (was?.run !== is?.run || was?.stay !== is?.stay) queue.add(keyOf(set))
    }
  })
}

interface Environment {
  readonly context: ControllerContext
  readonly nodes: ObjectCache<Node>
  readonly eligibleNodes: EligibleNodes
  readonly podsByOwner: Index<Pod>
  readonly podsBySet: DaemonPodsBySet
  readonly revisionsByOwner: Index<ControllerRevision>
  /** Back-off of nodes with a failed daemon pod, by uid of the DaemonSet and node. */
  readonly failures: Map<string, { count: number; untilMs: number }>
}

class DaemonSetReconcile {
  readonly #environment: Environment
  readonly #context: ControllerContext
  readonly #set: DaemonSetObject
  readonly #spec: PodSpec
  readonly #followed: DaemonPods
  #eligible: ReadonlyMap<string, DaemonEligibility> = new Map()
  #hash = ''
  #wakeMs = Number.POSITIVE_INFINITY
  #writes = 0

  constructor(environment: Environment, set: DaemonSetObject) {
    this.#environment = environment
    this.#context = environment.context
    this.#set = set
    this.#spec = environment.eligibleNodes.specOf(set)
    this.#followed = environment.podsBySet.of(set.metadata.uid ?? '')
  }

  *run(): Steps {
    const { revisionsByOwner, nodes, eligibleNodes } = this.#environment
    const set = this.#set
    const synced = syncRevisions(this.#context, revisionsByOwner, set, workloads.daemonSet)
    this.#hash = synced.update.metadata.labels?.[revisionHashLabel] ?? ''
    this.#eligible = eligibleNodes.all(set, nodes)
    this.#claim()
    if (set.metadata.deletionTimestamp === undefined) {
      yield* this.#place()
      if (set.spec.updateStrategy?.type !== 'OnDelete') yield* this.#update()
    }
    if (synced.revisions.length > 1) this.#dropRevisions(synced.revisions, synced.update)
    return this.#writeStatus()
  }

  #dropRevisions(revisions: readonly ControllerRevision[], present: ControllerRevision): void {
    const used = new Set(Array.from(this.#pods(), (pod) => pod.metadata.labels?.[revisionHashLabel]))
    dropRevisions(this.#context, this.#set, revisions, (revision) => {
      return revision === present || used.has(revision.metadata.labels?.[revisionHashLabel])
    })
  }

  /** Creates and deletes pods so that each eligible node has one. */
  *#place(): Generator<undefined, void, undefined> {
    // Read before any change: later events are handled by the next reconcile.
    const { byNode } = this.#followed
    const unusual: (readonly [string, readonly Pod[]])[] = []
    for (const [node, there] of byNode)
      if (!there.isOneAtWork || this.#eligible.get(node)?.stay !== true) unusual.push([node, there.pods])
    const empty: string[] = []
    for (const [node, { run }] of this.#eligible) if (run && !byNode.has(node)) empty.push(node)
    for (const [node, pods] of unusual) yield* this.#tidy(node, pods)
    for (const node of empty) yield* this.#create(node)
  }

  *#tidy(node: string, pods: readonly Pod[]): Generator<undefined, void, undefined> {
    const eligible = this.#eligible.get(node)
    // Pods of a removed node are deleted by the pod garbage collector, unless they were never bound.
    if (eligible === undefined) {
      for (const pod of pods) if ((pod.spec.nodeName ?? '') === '') yield* this.#remove(pod)
      return
    }
    const live = pods.filter((pod) => !isTerminating(pod))
    for (const pod of eligible.stay ? this.#superfluous(node, live) : live) yield* this.#remove(pod)
  }

  /** Failed pods (after a growing pause), and all but the oldest of several pods of one revision. */
  #superfluous(node: string, pods: readonly Pod[]): Pod[] {
    const remove: Pod[] = []
    const kept = new Set<string>()
    for (const pod of [...pods].sort(oldestFirst)) {
      const revision = pod.metadata.labels?.[revisionHashLabel] ?? ''
      if (pod.status?.phase === 'Failed') {
        if (this.#mayReplaceFailed(node, pod)) remove.push(pod)
      } else if (pod.status?.phase === 'Succeeded' || kept.has(revision)) {
        remove.push(pod)
      } else {
        kept.add(revision)
      }
    }
    return remove
  }

  #mayReplaceFailed(node: string, pod: Pod): boolean {
    const { failures } = this.#environment
    const id = `${this.#set.metadata.uid}/${node}`
    const now = this.#context.clock.monotonic()
    const known = failures.get(id)
    if (known !== undefined && known.untilMs > now) {
      this.#wakeMs = Math.min(this.#wakeMs, known.untilMs - now)
      return false
    }
    const forgotten = known === undefined || now - known.untilMs > 2 * lastFailureBackoffMs
    const count = forgotten ? 0 : known.count + 1
    const pauseMs = Math.min(lastFailureBackoffMs, firstFailureBackoffMs * 2 ** count)
    failures.set(id, { count, untilMs: now + pauseMs })
    const { namespace, name } = pod.metadata
    const message = `Found failed daemon pod ${namespace}/${name} on node ${node}, will try to kill it`
    this.#context.events.record(component, this.#set, 'Warning', 'FailedDaemonPod', message)
    return true
  }

  *#update(): Generator<undefined, void, undefined> {
    const isUpdated = (pod: Pod): boolean => pod.metadata.labels?.[revisionHashLabel] === this.#hash
    if ([...this.#pods()].every(isUpdated)) return
    const now = this.#context.clock.now()
    const onEligible = new Map(
      [...this.#followed.byNode].flatMap(([node, { pods }]) =>
        this.#eligible.get(node)?.run === true ? [[node, pods] as const] : [],
      ),
    )
    const step = rolloutStep(this.#set, onEligible, this.#desired(), this.#hash, now)
    for (const pod of step.remove) yield* this.#remove(pod)
    for (const node of step.surge) yield* this.#create(node)
  }

  *#create(node: string): Generator<undefined, void, undefined> {
    createPod(this.#context, component, this.#set, daemonPod(this.#set, this.#spec, node, this.#hash))
    if (++this.#writes % writesPerStep === 0) yield
  }

  *#remove(pod: Pod): Generator<undefined, void, undefined> {
    deletePod(this.#context, component, this.#set, pod)
    if (++this.#writes % writesPerStep === 0) yield
  }

  #desired(): number {
    let count = 0
    for (const { run } of this.#eligible.values()) if (run) count++
    return count
  }

  #writeStatus(): Outcome {
    const { clock, store } = this.#context
    const { minReadySeconds = 0 } = this.#set.spec
    const podsByNode = this.#followed.byNode
    const counts = { current: 0, misscheduled: 0, desired: 0, ready: 0, updated: 0, available: 0 }
    for (const [node, { run }] of this.#eligible) {
      const fare = podsByNode.get(node)?.fare
      if (run) counts.desired++
      if (fare?.first === undefined) continue
      if (!run) {
        counts.misscheduled++
        continue
      }
      counts.current++
      if (fare.hashes.includes(this.#hash)) counts.updated++
      if (fare.isReady) counts.ready++
      const inMs = fare.isReady ? availableInMs(fare.first, minReadySeconds, clock.now()) : undefined
      if (inMs === 0) counts.available++
      else if (inMs !== undefined) this.#wakeMs = Math.min(this.#wakeMs, inMs)
    }
    const unavailable = counts.desired - counts.available
    const { collisionCount } = this.#set.status ?? {}
    store.setStatus(workloads.daemonSet, this.#set, {
      currentNumberScheduled: counts.current,
      numberMisscheduled: counts.misscheduled,
      desiredNumberScheduled: counts.desired,
      numberReady: counts.ready,
      ...(this.#set.metadata.generation !== undefined && {
        observedGeneration: this.#set.metadata.generation,
      }),
      ...(counts.updated > 0 && { updatedNumberScheduled: counts.updated }),
      ...(counts.available > 0 && { numberAvailable: counts.available }),
      ...(unavailable > 0 && { numberUnavailable: unavailable }),
      ...(collisionCount !== undefined && { collisionCount }),
    })
    const touched = this.#eligible.size
    return Number.isFinite(this.#wakeMs) ? { touched, afterMs: this.#wakeMs } : { touched }
  }

  #pods(): IterableIterator<Pod> {
    return this.#environment.podsByOwner.of(this.#set.metadata.uid ?? '')
  }

  /** Adopts pods that match the selector, and releases those that no longer do. */
  #claim(): void {
    const { unclaimed } = this.#followed
    const changed = [...unclaimed]
    claimAmong(this.#context.store, unclaimed.values(), {
      index: this.#environment.podsByOwner,
      type: kinds.pod,
      owner: this.#set,
      ownerType: workloads.daemonSet,
      selector: this.#set.spec.selector,
    })
    for (const [key, pod] of changed) if (unclaimed.get(key) === pod) unclaimed.delete(key)
  }
}
