import { kinds, type Pod } from '@tenon/api'
import { type Clock, type Logger, perObject, type Random } from '@tenon/runtime'
import type { LocalApi } from '../contract.ts'
import {
  checkNodeItself,
  type AllocatedClaim,
  ClusterIndex,
  type ClusterView,
  DeviceIndex,
  type ExtraFilter,
  type FilterName,
  fitsEmptyNode,
  PodCycle,
  type PodFacts,
  podFacts,
  ResourceTable,
  SpreadDomains,
  unavailableMessage,
  VolumeIndex,
} from '@tenon/filters'
import { observeCluster } from './cluster/cluster-observer.ts'
import { DefaultSpread } from './filters/default-spread.ts'
import { ClaimWriter } from './devices/claim-writer.ts'
import { EventRecorder } from './queue/event-recorder.ts'
import { Nominations } from './queue/nominations.ts'
import { OutcomeWriter } from './queue/outcome-writer.ts'
import { type Diagnosis, Placer } from './placement.ts'
import { findPreemption } from './preemption.ts'
import { type ClusterEvent, type QueuedPod, SchedulingQueue } from './queue/scheduling-queue.ts'

/** How the scheduler behaves. Times in milliseconds. */
export interface SchedulerSettings {
  /** Pods of other schedulers are left alone. */
  readonly schedulerName: string
  /** Share of the nodes to find fitting before scoring; 0 adapts to the cluster's size. */
  readonly percentageOfNodesToScore: number
  readonly initialBackoffMs: number
  readonly maxBackoffMs: number
  /** Unschedulable pods are tried again after this time even if nothing happened. */
  readonly unschedulableFlushMs: number
  /** The event loop is given back after this time. */
  readonly sliceMs: number
  /** The event loop is given back after so many pods, also where time stands still. */
  readonly slicePods: number
  readonly eventsPerSecond: number
  readonly eventBurst: number
  /** A plugin of its own, asked last. */
  readonly extraFilter?: ExtraFilter
}

const defaults: SchedulerSettings = {
  schedulerName: 'default-scheduler',
  percentageOfNodesToScore: 0,
  initialBackoffMs: 1000,
  maxBackoffMs: 10_000,
  unschedulableFlushMs: 300_000,
  sliceMs: 6,
  slicePods: 200,
  eventsPerSecond: 50,
  eventBurst: 500,
}

/** What a scheduler runs on; settings that are absent take their defaults. */
export interface SchedulerOptions {
  readonly api: LocalApi
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly settings?: Partial<SchedulerSettings>
}

/** Binds pending pods to nodes by Kubernetes' rules until it is stopped. */
export function startScheduler(options: SchedulerOptions): { stop(): void } {
  return new Scheduler(options)
}

/** What is known of a failed attempt; it holds for equal pods as long as the cluster stands still. */
interface KnownFailure {
  readonly version: number
  readonly message: string
  readonly rejectedBy: ReadonlySet<FilterName>
}

class Scheduler {
  readonly #api: LocalApi
  readonly #clock: Clock
  readonly #random: Random
  readonly #settings: SchedulerSettings
  readonly #view: ClusterView & { readonly devices: DeviceIndex }
  readonly #defaultSpread: DefaultSpread
  readonly #nominations = new Nominations()
  readonly #placer: Placer
  readonly #queue: SchedulingQueue
  readonly #writer: OutcomeWriter
  readonly #claims: ClaimWriter
  readonly #failures = new Map<string, KnownFailure>()
  readonly #stopObserving: () => void
  /** Changes since the last slice, with the nodes that changed. */
  readonly #events = new Set<ClusterEvent>()
  readonly #changedNodes = new Set<string>()
  #cancelSlice: (() => void) | undefined
  #stopped = false

  constructor({ api, clock, random, logger, settings }: SchedulerOptions) {
    this.#api = api
    this.#clock = clock
    this.#random = random.fork('scheduler')
    this.#settings = { ...defaults, ...settings }
    const index = new ClusterIndex(new ResourceTable())
    this.#view = {
      index,
      volumes: new VolumeIndex(),
      devices: new DeviceIndex(),
      spreadDomains: new SpreadDomains(index),
      ...(settings?.extraFilter && { extraFilter: settings.extraFilter }),
    }
    this.#defaultSpread = new DefaultSpread(api)
    const { percentageOfNodesToScore } = this.#settings
    this.#placer = new Placer(this.#nominations, this.#random, percentageOfNodesToScore, this.#defaultSpread)
    this.#queue = new SchedulingQueue(clock, this.#settings, () => this.#scheduleSlice())
    const { schedulerName, eventsPerSecond, eventBurst } = this.#settings
    const limits = { perSecond: eventsPerSecond, burst: eventBurst }
    const recorder = new EventRecorder({ api, clock, random: random.fork('events') }, schedulerName, limits)
    this.#writer = new OutcomeWriter({ api, clock, logger }, recorder, schedulerName)
    this.#claims = new ClaimWriter({ api, logger, random: random.fork('claims') }, this.#view.devices)
    this.#stopObserving = observeCluster(api, this.#view, {
      pod: (uid, pod) => this.#observePod(uid, pod),
      changed: (event, nodeName) => this.#changed(event, nodeName),
    })
  }

  stop(): void {
    this.#stopped = true
    this.#cancelSlice?.()
    this.#stopObserving()
    this.#defaultSpread.stop()
    this.#queue.stop()
  }

  #changed(event: ClusterEvent, nodeName?: string): void {
    this.#events.add(event)
    if (nodeName !== undefined) this.#changedNodes.add(nodeName)
    this.#scheduleSlice()
  }

  #observePod(uid: string, pod: Pod | undefined): void {
    const finished = pod?.status?.phase === 'Succeeded' || pod?.status?.phase === 'Failed'
    if (pod === undefined || finished) this.#forgetPod(uid)
    else if ((pod.spec.nodeName ?? '') !== '') this.#observeAssigned(uid, pod)
    else if ((pod.spec.schedulerName ?? defaults.schedulerName) === this.#settings.schedulerName) {
      this.#observePending(uid, pod)
    }
  }

  #forgetPod(uid: string): void {
    this.#queue.remove(uid)
    const assigned = this.#view.index.assignedTo(uid) !== undefined
    this.#view.index.release(uid)
    if (this.#nominations.remove(uid) || assigned) {
      this.#view.index.touch()
      this.#changed('podRemoved')
    }
  }

  #observeAssigned(uid: string, pod: Pod): void {
    const { index } = this.#view
    const known = index.assignedTo(uid)
    if (known !== undefined && !changesAccount(known.facts.pod, pod)) return
    this.#queue.remove(uid)
    this.#nominations.remove(uid)
    const facts = podFacts(pod, index.table)
    index.assign(facts, pod.spec.nodeName as string)
    this.#changed('podAdded')
    // A pod on its way out no longer counts for spreading; a resized one may take less.
    if (known !== undefined) this.#changed('podRemoved')
  }

  #observePending(uid: string, pod: Pod): void {
    const queued = this.#queue.get(uid)
    if (queued?.facts.pod === pod || this.#view.index.assignedTo(uid) !== undefined) return
    if (pod.metadata.deletionTimestamp !== undefined) {
      this.#forgetPod(uid)
      return
    }
    const facts = podFacts(pod, this.#view.index.table)
    this.#nominate(facts, pod.status?.nominatedNodeName)
    if ((pod.spec.schedulingGates ?? []).length > 0) {
      this.#queue.remove(uid)
      this.#writer.gated(facts)
    } else if (queued === undefined) {
      this.#queue.add(facts)
    } else {
      this.#queue.update(queued, facts, changesAttempt(queued.facts.pod, pod))
    }
  }

  #scheduleSlice(): void {
    if (this.#stopped) return
    this.#cancelSlice ??= this.#clock.after(0, () => {
      this.#cancelSlice = undefined
      this.#runSlice()
    })
  }

  #runSlice(): void {
    this.#wake()
    const end = this.#clock.monotonic() + this.#settings.sliceMs
    for (let pods = 0; pods < this.#settings.slicePods; pods++) {
      const queued = this.#queue.pop()
      if (queued === undefined) return
      this.#attempt(queued)
      if (this.#clock.monotonic() >= end) break
    }
    this.#scheduleSlice()
  }

  /** Brings unschedulable pods back that what happened since the last slice can help. */
  #wake(): void {
    if (this.#events.size === 0) return
    const { index } = this.#view
    const nodes = [...this.#changedNodes].flatMap((name) => index.node(name) ?? [])
    this.#queue.wake(new Set(this.#events), ({ facts, rejectedBy }, event) => {
      if (event !== 'nodeChanged') return true
      // Any change of nodes can shift domains; otherwise one of the changed nodes must suit the pod.
      if (rejectedBy.has('PodTopologySpread') || rejectedBy.has('InterPodAffinity')) return true
      // Only a plugin that refused the pod is asked whether the change may help it.
      const wasTooSmall = rejectedBy.has('NodeResourcesFit')
      return nodes.some(
        (entry) =>
          checkNodeItself(facts, entry) === undefined && (!wasTooSmall || fitsEmptyNode(facts, entry)),
      )
    })
    this.#events.clear()
    this.#changedNodes.clear()
  }

  #attempt(queued: QueuedPod): void {
    const { facts } = queued
    const shape = this.#failures.size === 0 ? undefined : shapeOf(facts)
    const known = shape === undefined ? undefined : this.#failures.get(shape)
    if (known !== undefined && known.version === this.#view.index.version) {
      this.#giveUp(queued, known.message, known.rejectedBy, this.#nominations.nodeOf(facts.uid))
      return
    }
    const cycle = new PodCycle(facts, this.#view)
    const placement = this.#placer.place(cycle)
    if (placement.kind === 'node') this.#bind(queued, cycle, placement.entry.name)
    else this.#preemptOrGiveUp(queued, cycle, placement.diagnosis)
  }

  #bind(queued: QueuedPod, cycle: PodCycle, nodeName: string): void {
    const { facts } = queued
    const claims = cycle.volumePlan.waiting.map(({ claim }) => claim.metadata.name)
    const devices = this.#devicesOn(cycle, nodeName)
    const isReserved = this.#claims.reserve(facts, devices)
    const result = isReserved ? this.#writer.bind(facts, nodeName, claims) : 'refused'
    if (result !== 'bound') this.#claims.release(facts, devices)
    if (result === 'refused') {
      this.#queue.retryLater(queued)
      return
    }
    this.#queue.remove(facts.uid)
    this.#nominations.remove(facts.uid)
    if (result === 'bound') {
      this.#view.index.assign(facts, nodeName)
      this.#events.add('podAdded')
    }
  }

  /** What the claims of the pod are given on the node that it goes to. */
  #devicesOn(cycle: PodCycle, nodeName: string): readonly AllocatedClaim[] {
    const entry = this.#view.index.node(nodeName)
    if ((cycle.facts.pod.spec.resourceClaims ?? []).length === 0 || entry === undefined) return []
    const devices = cycle.devicesOn(entry)
    return 'reasons' in devices ? [] : devices
  }

  #preemptOrGiveUp(queued: QueuedPod, cycle: PodCycle, diagnosis: Diagnosis): void {
    const { facts } = queued
    const rejections = [...diagnosis.rejections.values()]
    const rejectedBy = new Set(rejections.map((one) => one.filter))
    const text = failureText(cycle, diagnosis)
    // Devices that nobody uses may be in the way: elsewhere there may be others, with a node for the pod.
    this.#claims.deallocate(facts, cycle.devicePlan.allocated)
    const budgets = this.#api.list(kinds.podDisruptionBudget)
    const preemption = findPreemption(cycle, diagnosis, this.#placer, budgets, this.#random)
    if (preemption.kind === 'candidate') {
      const { entry, victims } = preemption.candidate
      for (const victim of victims) this.#writer.preempt(victim, facts, entry.name)
      for (const other of this.#nominations.behind(facts, entry.name)) {
        this.#nominations.remove(other.uid)
        this.#writer.clearNomination(other)
        this.#changed('podRemoved')
      }
      this.#giveUp(queued, text, rejectedBy, entry.name)
      return
    }
    const message = diagnosis.total === 0 ? text : `${text} preemption: ${preemption.message}`
    const nominated = this.#nominations.nodeOf(facts.uid)
    const kept = nominated !== undefined && this.#view.index.node(nominated) !== undefined
    this.#giveUp(queued, message, rejectedBy, kept ? nominated : undefined)
    this.#remember(facts, message, rejectedBy)
  }

  #giveUp(
    queued: QueuedPod,
    message: string,
    rejectedBy: ReadonlySet<FilterName>,
    nominatedNodeName: string | undefined,
  ): void {
    const { facts } = queued
    this.#nominate(facts, nominatedNodeName)
    this.#queue.setAside(queued, rejectedBy)
    this.#writer.fail(facts, message, nominatedNodeName)
  }

  /** Reserves room on a node, or gives it up, which can help others. */
  #nominate(facts: PodFacts, nodeName: string | undefined): void {
    const before = this.#nominations.nodeOf(facts.uid)
    const next = nodeName === '' ? undefined : nodeName
    this.#nominations.set(facts, next)
    if (before === next) return
    this.#view.index.touch()
    if (before !== undefined) this.#changed('podRemoved')
  }

  #remember(facts: PodFacts, message: string, rejectedBy: ReadonlySet<FilterName>): void {
    const shape = shapeOf(facts)
    if (shape === undefined || this.#nominations.nodeOf(facts.uid) !== undefined) return
    const version = this.#view.index.version
    for (const [key, known] of this.#failures) if (known.version !== version) this.#failures.delete(key)
    this.#failures.set(shape, { version, message, rejectedBy })
  }
}

function failureText(cycle: PodCycle, diagnosis: Diagnosis): string {
  const early = cycle.early
  if (early !== undefined && diagnosis.total > 0) {
    return `0/${diagnosis.total} nodes are available: ${early.reasons.join(', ')}.`
  }
  const reasons = [...diagnosis.rejections.values()].map((one) => one.reasons)
  return unavailableMessage(diagnosis.total, reasons)
}

/** A spec as text; versions of a pod share it. */
const specText = perObject((spec: Pod['spec']) => JSON.stringify(spec))

/** Equal for pods whose attempts must end alike; undefined for pods with volumes or devices of their own. */
function shapeOf(facts: PodFacts): string | undefined {
  if (facts.claims.some((one) => one.ephemeral)) return undefined
  if ((facts.pod.spec.resourceClaims ?? []).length > 0) return undefined
  if ((facts.pod.status?.nominatedNodeName ?? '') !== '') return undefined
  return JSON.stringify([facts.namespace, facts.labels]) + specText(facts.pod.spec)
}

/** Whether a new version of an assigned pod changes totals or counts. */
function changesAccount(before: Pod, after: Pod): boolean {
  return (
    before.spec.nodeName !== after.spec.nodeName ||
    (before.metadata.deletionTimestamp === undefined) !== (after.metadata.deletionTimestamp === undefined) ||
    differs(before.metadata.labels, after.metadata.labels) ||
    differs(before.spec.containers, after.spec.containers)
  )
}

/** Whether a new version of a pending pod deserves another attempt: any change but of its status, its claims apart. */
function changesAttempt(before: Pod, after: Pod): boolean {
  return (
    differs(before.spec, after.spec) ||
    differs(before.metadata.labels, after.metadata.labels) ||
    differs(before.metadata.annotations, after.metadata.annotations) ||
    differs(before.status?.resourceClaimStatuses, after.status?.resourceClaimStatuses)
  )
}

function differs(before: unknown, after: unknown): boolean {
  return before !== after && JSON.stringify(before) !== JSON.stringify(after)
}
