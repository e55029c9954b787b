import { isResizeInfeasible, type Pod, type ResizedRequests, type ScoredBalance } from '@tenon/api'
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
  servedResources,
  PodCycle,
  type PodFacts,
  PodReader,
  SpreadDomains,
  VolumeIndex,
  volumesFor,
} from '@tenon/filters'
import { observeCluster } from './cluster/cluster-observer.ts'
import { HeldEvents } from './cluster/held-events.ts'
import { DefaultSpread } from './filters/default-spread.ts'
import { ClaimWriter } from './devices/claim-writer.ts'
import { EventRecorder } from './queue/event-recorder.ts'
import { Nominations } from './queue/nominations.ts'
import { OutcomeWriter } from './queue/outcome-writer.ts'
import { GroupScheduling } from './groups/group-scheduling.ts'
import { GroupTrials } from './groups/group-trial.ts'
import { GroupWriter } from './groups/group-writer.ts'
import { type Diagnosis, Placer } from './placement.ts'
import { type ClusterEvent, type QueuedPod, SchedulingQueue } from './queue/scheduling-queue.ts'
import { type Refusal, Refusals } from './refusals.ts'

/** Settings of the scheduler. Times in milliseconds. */
export interface SchedulerSettings {
  /** Pods of other schedulers are ignored. */
  readonly schedulerName: string
  /** Percentage of feasible nodes to find before scoring; 0 adapts to the cluster's size. */
  readonly percentageOfNodesToScore: number
  readonly initialBackoffMs: number
  readonly maxBackoffMs: number
  /** Unschedulable pods are retried after this time even without an event. */
  readonly unschedulableFlushMs: number
  /** The scheduler yields to the event loop after this time. */
  readonly sliceMs: number
  /** It also yields after this number of pods, as virtual time stands still. */
  readonly slicePods: number
  readonly eventsPerSecond: number
  readonly eventBurst: number
  /** How pods count that are resized in place: depends on the minor of Kubernetes. */
  readonly resizedRequests: ResizedRequests
  /** What is scored as balance: depends on the minor of Kubernetes, too. */
  readonly balance: ScoredBalance
  /** An additional filter, which runs last. */
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
  resizedRequests: 'sumOfMaxima',
  balance: 'use',
}

/** What a scheduler needs; absent settings have defaults. */
export interface SchedulerOptions {
  readonly api: LocalApi
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly settings?: Partial<SchedulerSettings>
  /** Whether each DeviceClass serves an implicit extended resource; see {@link DeviceIndex}. Default: no. */
  readonly hasImplicitNames?: (isGateOn: boolean) => boolean
}

/** Binds pending pods to nodes by Kubernetes' rules until it is stopped. */
export function startScheduler(options: SchedulerOptions): { stop(): void } {
  return new Scheduler(options)
}

/** A failed attempt, which applies to equal pods as long as the cluster does not change. */
interface KnownFailure {
  readonly version: number
  readonly message: string
  readonly rejectedBy: ReadonlySet<FilterName>
}

class Scheduler {
  readonly #clock: Clock
  readonly #random: Random
  readonly #settings: SchedulerSettings
  readonly #pods: PodReader
  readonly #view: ClusterView & { readonly devices: DeviceIndex }
  readonly #defaultSpread: DefaultSpread
  readonly #nominations = new Nominations()
  readonly #placer: Placer
  readonly #queue: SchedulingQueue
  readonly #writer: OutcomeWriter
  readonly #claims: ClaimWriter
  readonly #refusals: Refusals
  readonly #groups: GroupScheduling
  readonly #held = new HeldEvents()
  /** The group that is being tried. */
  #cycle: ReturnType<GroupScheduling['attempt']>
  readonly #failures = new Map<string, KnownFailure>()
  readonly #stopObserving: () => void
  readonly #stopObservingGroups: () => void
  /** Changes since the last slice, and the changed nodes. */
  readonly #events = new Set<ClusterEvent>()
  readonly #changedNodes = new Set<string>()
  #cancelSlice: (() => void) | undefined
  #stopped = false

  constructor({ api, clock, random, logger, settings, hasImplicitNames }: SchedulerOptions) {
    this.#clock = clock
    this.#random = random.fork('scheduler')
    this.#settings = { ...defaults, ...settings }
    this.#pods = new PodReader(this.#settings.resizedRequests)
    const index = new ClusterIndex(this.#pods.table)
    this.#view = {
      index,
      volumes: new VolumeIndex(),
      devices: new DeviceIndex(hasImplicitNames),
      spreadDomains: new SpreadDomains(index),
      ...(settings?.extraFilter && { extraFilter: settings.extraFilter }),
    }
    this.#defaultSpread = new DefaultSpread(api)
    const { percentageOfNodesToScore, balance } = this.#settings
    this.#placer = new Placer(
      this.#nominations,
      this.#random,
      percentageOfNodesToScore,
      this.#defaultSpread,
      balance,
    )
    this.#queue = new SchedulingQueue(clock, this.#settings, () => this.#scheduleSlice())
    const { schedulerName, eventsPerSecond, eventBurst } = this.#settings
    const limits = { perSecond: eventsPerSecond, burst: eventBurst }
    const recorder = new EventRecorder({ api, clock, random: random.fork('events') }, schedulerName, limits)
    this.#writer = new OutcomeWriter({ api, clock, logger }, recorder, schedulerName)
    this.#claims = new ClaimWriter({ api, logger, random: random.fork('claims') }, this.#view.devices)
    const refusing = { nominations: this.#nominations, writer: this.#writer, claims: this.#claims }
    this.#refusals = new Refusals({ ...refusing, api, random: this.#random, placer: this.#placer })
    const trying = {
      view: this.#view,
      placer: this.#placer,
      nominations: this.#nominations,
      random: this.#random,
    }
    this.#groups = new GroupScheduling({
      clock,
      index,
      queue: this.#queue,
      trials: new GroupTrials(trying),
      writer: new GroupWriter({ api, clock, logger }),
      actions: this.#groupHands(),
    })
    const observed = this.#held.through(api)
    this.#stopObservingGroups = this.#groups.observe(observed)
    this.#stopObserving = observeCluster(observed, this.#view, {
      pod: (uid, pod) => this.#observePod(uid, pod),
      changed: (event, nodeName) => this.#changed(event, nodeName),
    })
  }

  stop(): void {
    this.#stopped = true
    this.#cancelSlice?.()
    this.#stopObserving()
    this.#stopObservingGroups()
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
    const isOwn = (pod?.spec.schedulerName ?? defaults.schedulerName) === this.#settings.schedulerName
    this.#groups.see(uid, finished || !isOwn ? undefined : pod)
    if (pod === undefined || finished) this.#forgetPod(uid)
    else if ((pod.spec.nodeName ?? '') !== '') this.#observeAssigned(uid, pod)
    else if (isOwn) this.#observePending(uid, pod)
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
    const facts = this.#pods.factsOf(pod)
    index.assign(facts, pod.spec.nodeName as string)
    this.#changed('podAdded')
    // A terminating pod no longer counts for spreading; a resized one may use less.
    if (known !== undefined) this.#changed('podRemoved')
  }

  #observePending(uid: string, pod: Pod): void {
    const queued = this.#queue.get(uid)
    if (queued?.facts.pod === pod || this.#view.index.assignedTo(uid) !== undefined) return
    if (pod.metadata.deletionTimestamp !== undefined) {
      this.#forgetPod(uid)
      return
    }
    const facts = this.#pods.factsOf(pod)
    this.#nominate(facts, pod.status?.nominatedNodeName)
    if ((pod.spec.schedulingGates ?? []).length > 0) {
      this.#queue.remove(uid)
      this.#writer.gated(facts)
    } else if (queued === undefined) {
      if (this.#groups.admits(facts)) this.#queue.add(facts)
    } else {
      const isChanged = changesAttempt(queued.facts.pod, pod)
      this.#queue.update(queued, facts, isChanged)
      if (isChanged || (pod.status?.nominatedNodeName ?? '') !== '') this.#groups.update(facts)
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
    const end = this.#clock.monotonic() + this.#settings.sliceMs
    if (!this.#goOn(end)) {
      this.#scheduleSlice()
      return
    }
    this.#wake()
    for (let pods = 0; pods < this.#settings.slicePods; pods++) {
      const queued = this.#queue.pop() ?? this.#nextOfGroups()
      if (queued === undefined) return
      this.#cycle = this.#groups.attempt(queued)
      if (this.#cycle === undefined) this.#attempt(queued)
      else if (!this.#goOn(end)) break
      if (this.#clock.monotonic() >= end) break
    }
    this.#scheduleSlice()
  }

  /**
   * Continues with the current group.
   * @returns whether it is done.
   */
  #goOn(end: number): boolean {
    if (this.#cycle === undefined) return true
    for (let steps = 0; steps < this.#settings.slicePods; steps++) {
      if (this.#cycle.next().done === true) {
        this.#cycle = undefined
        return true
      }
      if (this.#clock.monotonic() >= end) break
    }
    return false
  }

  /** Rejected groups come last, after pods in back-off. */
  #nextOfGroups(): QueuedPod | undefined {
    return this.#groups.isReady ? (this.#queue.popEarly() ?? this.#groups.next()) : undefined
  }

  /** Activates unschedulable pods that changes since the last slice can help. */
  #wake(): void {
    if (this.#events.size === 0) return
    const { index } = this.#view
    const nodes = [...this.#changedNodes].flatMap((name) => index.node(name) ?? [])
    this.#queue.wake(new Set(this.#events), ({ facts, rejectedBy }, event) => {
      if (event !== 'nodeChanged') return true
      // Any change of nodes can change domains; for other rules one of the changed nodes must fit.
      if (rejectedBy.has('PodTopologySpread') || rejectedBy.has('InterPodAffinity')) return true
      // Only plugins that rejected the pod decide whether the change may help.
      const wasTooSmall = rejectedBy.has('NodeResourcesFit')
      return nodes.some(
        (entry) =>
          checkNodeItself(facts, entry) === undefined &&
          (!wasTooSmall || fitsEmptyNode(facts, entry, this.#view)),
      )
    })
    this.#groups.wake()
    this.#events.clear()
    this.#changedNodes.clear()
  }

  #attempt(queued: QueuedPod): void {
    const { facts } = queued
    const shape = this.#failures.size === 0 ? undefined : shapeOf(facts, this.#view.devices)
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
    const reserved = this.#reserveVolumes(cycle, nodeName)
    const waiting = cycle.volumePlan.waiting.map(({ claim }) => claim.metadata.name)
    const claims = waiting.filter((claim) => reserved?.has(claim) !== true)
    const devices = this.#devicesOn(cycle, nodeName)
    const isReserved = reserved !== undefined && this.#claims.reserve(facts, devices)
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

  /**
   * Reserves the existing volumes that the pod's claims get on the node: the next pod must not count on them.
   * @returns the names of these claims, or undefined if a claim gets none, as another pod of its group was faster.
   */
  #reserveVolumes({ facts, volumePlan }: PodCycle, nodeName: string): ReadonlySet<string> | undefined {
    const { index, volumes } = this.#view
    const entry = index.node(nodeName)
    if (volumePlan.waiting.length === 0 || entry === undefined) return new Set()
    const existing = volumesFor(volumePlan, entry, volumes)
    if (existing === undefined) return undefined
    for (const [claim, volume] of existing) {
      const reserved = this.#writer.reserveVolume(volume, facts.namespace, claim)
      if (reserved === undefined) return undefined
      volumes.setVolume(reserved)
      index.touch()
    }
    return new Set(existing.keys())
  }

  /** The allocations of the pod's claims on its node. */
  #devicesOn(cycle: PodCycle, nodeName: string): readonly AllocatedClaim[] {
    const entry = this.#view.index.node(nodeName)
    if (!cycle.usesDevices || entry === undefined) return []
    const devices = cycle.devicesOn(entry)
    return 'reasons' in devices ? [] : devices
  }

  #preemptOrGiveUp(queued: QueuedPod, cycle: PodCycle, diagnosis: Diagnosis): void {
    const { facts } = queued
    const { message, rejectedBy, nodeName, preemption } = this.#refuse(cycle, diagnosis)
    const kept = nodeName !== undefined && this.#view.index.node(nodeName) !== undefined
    this.#giveUp(queued, message, rejectedBy, kept ? nodeName : undefined)
    if (preemption !== 'begun') this.#remember(facts, message, rejectedBy)
  }

  #refuse(cycle: PodCycle, diagnosis: Diagnosis): Refusal {
    const refusal = this.#refusals.refuse(cycle, diagnosis)
    if (refusal.freesRoom) this.#changed('podRemoved')
    return refusal
  }

  #groupHands(): ConstructorParameters<typeof GroupScheduling>[0]['actions'] {
    return {
      hold: () => this.#held.hold(),
      release: () => this.#held.release(),
      wakeUp: () => this.#scheduleSlice(),
      bind: (queued, nodeName) => {
        // The node may be gone since the group was tried.
        if (this.#view.index.node(nodeName) === undefined) this.#queue.retryLater(queued)
        else this.#bind(queued, new PodCycle(queued.facts, this.#view), nodeName)
      },
      refuse: ({ cycle, diagnosis }) => {
        const { message, nodeName, preemption } = this.#refuse(cycle, diagnosis)
        // A nomination only makes sense during preemption; otherwise other pods of the group may use the
        // node.
        const kept = preemption === 'none' ? undefined : nodeName
        this.#nominate(cycle.facts, kept)
        return { message, nodeName: kept }
      },
      fail: (facts, { reason, message, nodeName, isRepeated }) => {
        this.#nominate(facts, nodeName)
        this.#writer.fail(facts, { reason, message, nodeName, isRepeated })
      },
    }
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
    this.#writer.fail(facts, { reason: 'Unschedulable', message, nodeName: nominatedNodeName })
  }

  /** Sets or removes a nomination; the removal can help others. */
  #nominate(facts: PodFacts, nodeName: string | undefined): void {
    const before = this.#nominations.nodeOf(facts.uid)
    const next = nodeName === '' ? undefined : nodeName
    this.#nominations.set(facts, next)
    if (before === next) return
    this.#view.index.touch()
    if (before !== undefined) this.#changed('podRemoved')
  }

  #remember(facts: PodFacts, message: string, rejectedBy: ReadonlySet<FilterName>): void {
    const shape = shapeOf(facts, this.#view.devices)
    if (shape === undefined || this.#nominations.nodeOf(facts.uid) !== undefined) return
    // The result of an additional filter may change although the cluster does not.
    if (rejectedBy.has('Extra')) return
    const version = this.#view.index.version
    for (const [key, known] of this.#failures) if (known.version !== version) this.#failures.delete(key)
    this.#failures.set(shape, { version, message, rejectedBy })
  }
}

/** A spec as text; versions of a pod share it. */
const specText = perObject((spec: Pod['spec']) => JSON.stringify(spec))

/**
 * Equal for pods whose attempts must have equal results; undefined for pods with volumes or devices of their own.
 */
function shapeOf(facts: PodFacts, devices: DeviceIndex): string | undefined {
  if (facts.claims.some((one) => one.ephemeral)) return undefined
  if ((facts.pod.spec.resourceClaims ?? []).length > 0) return undefined
  if (servedResources(facts, devices).length > 0) return undefined
  if ((facts.pod.status?.nominatedNodeName ?? '') !== '') return undefined
  return JSON.stringify([facts.namespace, facts.labels]) + specText(facts.pod.spec)
}

/** Whether a new version of a bound pod changes totals or counts. */
function changesAccount(before: Pod, after: Pod): boolean {
  return (
    before.spec.nodeName !== after.spec.nodeName ||
    (before.metadata.deletionTimestamp === undefined) !== (after.metadata.deletionTimestamp === undefined) ||
    differs(before.metadata.labels, after.metadata.labels) ||
    differs(before.spec.containers, after.spec.containers) ||
    differs(heldBy(before), heldBy(after))
  )
}

/** The allocated resources of a pod and its containers, and the state of a resize. */
function heldBy({ status }: Pod): unknown {
  const { containerStatuses = [], initContainerStatuses = [] } = status ?? {}
  const held = [...containerStatuses, ...initContainerStatuses, status ?? {}].map(
    ({ allocatedResources, resources }) => resources && [resources.requests, allocatedResources],
  )
  return held.every((each) => each === undefined) ? undefined : [held, isResizeInfeasible(status)]
}

/**
 * Whether a new version of a pending pod is retried: any change except of its status, apart from its claims.
 */
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
