/**
 * The state of groups that is kept between loops: upcoming nodes, health and back-off (cluster-autoscaler.md 2.4, 2.5,
 * 2.7, 2.8). Pure: time and facts are arguments.
 */
import type { GroupInstance, NodeGroup } from '@tenon/provider'
import { durationText } from '@tenon/runtime'
import { type LoopView, noGroups } from '../model.ts'
import type { RegistryOptions } from '../options/options.ts'
import { type Backoff, GroupBackoff, type ScaleUpFailure } from './backoff.ts'
import { CreateErrors, type FailedCreations } from './create-errors.ts'
import { ClusterReadiness, type Readiness } from './readiness.ts'
import { type ScaleUpRequest, ScaleUpRequests } from './scale-up-requests.ts'
import {
  acceptableRange,
  type AcceptableRange,
  type IncorrectSize,
  isSizeIncorrect,
  missingNodes,
} from './sizes.ts'
import { type UnregisteredInstance, UnregisteredInstances } from './unregistered.ts'

export type RegistryInput = Pick<LoopView, 'nowMs' | 'nodes' | 'index' | 'instances'>

/** The result of an update, from which events and metrics follow. */
export interface RegistryUpdate {
  /** Requests whose nodes did not come in time. Their groups are in back-off already. */
  readonly timedOut: readonly TimedOut[]
  /** Members that could not be created. Their groups are in back-off and the requests reduced already. */
  readonly failedCreations: readonly FailedCreations[]
}

/** A request that timed out, and after how long. */
export interface TimedOut extends ScaleUpRequest {
  readonly afterMs: number
  /** How many nodes the group's target may be lowered by; not more than what is missing. */
  readonly takesBack: number
}

/** A group that has been smaller than its target for too long. */
export interface SizeFix {
  readonly groupId: string
  /** By how many nodes its target is too high. */
  readonly delta: number
}

/** Members of a group to remove, or that cannot be removed because of its minimum. */
export type UnregisteredRemoval =
  | { readonly kind: 'remove'; readonly groupId: string; readonly instances: readonly UnregisteredInstance[] }
  | { readonly kind: 'atMinimum'; readonly groupId: string; readonly count: number }

export type Safety = 'safe' | 'unhealthy' | 'backoff'

const deletionMemoryMs = 5 * 60_000
/** After a start: how long members may still be made for a size that was written before it. */
const settlingMs = 2 * 60_000

export class ClusterStateRegistry {
  readonly #options: RegistryOptions
  readonly #unregistered = new UnregisteredInstances()
  readonly #requests = new ScaleUpRequests()
  readonly #backoff: GroupBackoff
  readonly #createErrors = new CreateErrors()
  readonly #deletions = new Map<string, readonly number[]>()
  #index = noGroups
  #readiness = new ClusterReadiness({
    nowMs: 0,
    nodes: [],
    index: this.#index,
    unregistered: [],
    maxStartupMs: () => 0,
    isLong: () => false,
  })
  #firstMs: number | undefined
  #lastMs: number | undefined
  /** Numbers of members by group id; absent if unknown. */
  #memberCounts: ReadonlyMap<string, number> = new Map()
  #ranges = new Map<string, AcceptableRange>()
  #incorrect = new Map<string, IncorrectSize>()

  constructor(options: RegistryOptions) {
    this.#options = options
    this.#backoff = new GroupBackoff(options)
  }

  update(input: RegistryInput): RegistryUpdate {
    const { nowMs, nodes, index, instances } = input
    this.#index = index
    const elapsedMs = Math.max(0, nowMs - (this.#lastMs ?? nowMs))
    this.#lastMs = nowMs
    this.#firstMs ??= nowMs
    this.#memberCounts = new Map([...instances].map(([groupId, members]) => [groupId, members.length]))
    for (const groupId of index.holds.keys())
      if (this.#isPaused(groupId)) this.#requests.extend(groupId, elapsedMs)
    this.#unregistered.update({
      nowMs,
      nodes,
      groupOf: index.groupOf,
      groupIds: index.groups.keys(),
      instances,
      pausedMs: (groupId) => (this.#isPaused(groupId) ? elapsedMs : 0),
    })
    this.#readiness = new ClusterReadiness({
      nowMs,
      nodes,
      index,
      unregistered: this.#unregistered.all(),
      maxStartupMs: (groupId) => this.#maxStartupMs(groupId),
      isLong: (instance) => this.#isTooOld(instance, nowMs),
    })
    const timedOut = this.#endRequests(nowMs)
    const failedCreations = this.#reduceByFailures(instances, nowMs)
    this.#forgetDeletions(nowMs)
    this.#ranges = this.#acceptableRanges()
    this.#incorrect = this.#incorrectSizes(nowMs, instances)
    return { timedOut, failedCreations }
  }

  /** Undefined if it has neither a node nor an instance without a node. */
  readinessOf(groupId: string): Readiness | undefined {
    return this.#readiness.of(groupId)
  }

  /** Of all nodes, including those outside groups. */
  totals(): Readiness {
    return this.#readiness.totals
  }

  isClusterHealthy(): boolean {
    return isClusterHealthy(this.totals(), this.#options)
  }

  /** An unknown group is not healthy. */
  isGroupHealthy(groupId: string): boolean {
    const range = this.#ranges.get(groupId)
    return range !== undefined && isGroupHealthy(range, this.readinessOf(groupId), this.#options)
  }

  /** Whether a group may grow now. */
  safety(groupId: string, nowMs: number): Safety {
    if (!this.isGroupHealthy(groupId)) return 'unhealthy'
    return this.#backoff.of(groupId, nowMs) === undefined ? 'safe' : 'backoff'
  }

  acceptableRangeOf(groupId: string): AcceptableRange | undefined {
    return this.#ranges.get(groupId)
  }

  incorrectSizeOf(groupId: string): IncorrectSize | undefined {
    return this.#incorrect.get(groupId)
  }

  backoffOf(groupId: string, nowMs: number): Backoff | undefined {
    return this.#backoff.of(groupId, nowMs)
  }

  requestOf(groupId: string): ScaleUpRequest | undefined {
    return this.#requests.of(groupId)
  }

  hasLiveRequest(groupId: string): boolean {
    return this.requestOf(groupId) !== undefined
  }

  /** Whether any group has upcoming nodes. */
  isScalingUp(): boolean {
    return this.#requests.all().length > 0
  }

  /**
   * The number of upcoming nodes on which pods can be placed. Without a request, as after a restart, only those that
   * are proven: starting instances, nodes that are not ready yet, and soon after the start members that nobody has made
   * yet. Otherwise a restart would request the same nodes again.
   */
  upcomingOf(groupId: string, nowMs: number): number {
    const group = this.#index.groups.get(groupId)
    if (group === undefined || this.#backoff.of(groupId, nowMs) !== undefined) return 0
    const readiness = this.readinessOf(groupId)
    const missing = Math.max(0, missingNodes(group.targetSize, readiness))
    if (this.hasLiveRequest(groupId)) return missing
    const starting = this.#unregistered
      .of(groupId)
      .filter((instance) => isStarting(instance) && !this.#isTooOld(instance, nowMs))
    const unmade = this.#unmade(group, nowMs)
    return Math.min(missing, starting.length + (readiness?.notStarted.length ?? 0) + unmade)
  }

  /**
   * The cloud has accepted `delta` more nodes, or will not provide `-delta` of those that it had accepted.
   */
  registerScaleUp(groupId: string, delta: number, nowMs: number): void {
    this.#requests.add(groupId, delta, nowMs, this.#maxProvisionMs(groupId))
  }

  /** Starts the group's back-off. Registered nodes that will not come are not subtracted. */
  registerFailedScaleUp(groupId: string, failure: ScaleUpFailure, nowMs: number): void {
    this.#backoff.fail(groupId, failure, nowMs)
  }

  /** The removal of one node has begun. */
  registerDeletion(groupId: string, nowMs: number): void {
    this.#deletions.set(groupId, [...(this.#deletions.get(groupId) ?? []), nowMs])
  }

  /** By group id: members that could not be created and must be removed. */
  instancesToReplace(): ReadonlyMap<string, readonly GroupInstance[]> {
    const groupIds = this.#createErrors.groupIds().filter((groupId) => this.#mayShrink(groupId))
    return new Map(groupIds.map((groupId) => [groupId, this.#createErrors.of(groupId)]))
  }

  /** Groups whose target should be lowered to their actual size. */
  sizeFixes(nowMs: number): readonly SizeFix[] {
    return [...this.#incorrect.values()]
      .filter(
        (size) =>
          size.registered < size.target && this.#mayShrink(size.groupId) && this.#isTooOld(size, nowMs),
      )
      .map(({ groupId, registered, target }) => ({ groupId, delta: target - registered }))
  }

  /**
   * Instances without a node for too long, oldest first.
   * @param removalsInProgress members of a group that are being removed.
   */
  oldUnregistered(
    nowMs: number,
    removalsInProgress: (groupId: string) => number,
  ): readonly UnregisteredRemoval[] {
    return [...this.#index.groups.values()].flatMap((group): readonly UnregisteredRemoval[] => {
      if (!this.#mayShrink(group.id)) return []
      const old = this.#unregistered
        .of(group.id)
        .filter((instance) => this.#isTooOld(instance, nowMs))
        .toSorted((a, b) => a.sinceMs - b.sinceMs || (a.providerId < b.providerId ? -1 : 1))
      if (old.length === 0) return []
      const spare = this.#options.forceDeleteUnregisteredNodes
        ? old.length
        : group.targetSize - group.minSize - removalsInProgress(group.id)
      if (spare <= 0) return [{ kind: 'atMinimum', groupId: group.id, count: old.length }]
      return [{ kind: 'remove', groupId: group.id, instances: old.slice(0, spare) }]
    })
  }

  /** Members that a size written before the start still lacks, as some clouds make them only after the write. */
  #unmade({ id, targetSize }: Pick<NodeGroup, 'id' | 'targetSize'>, nowMs: number): number {
    const members = this.#memberCounts.get(id)
    const isSettling = nowMs < (this.#firstMs ?? nowMs) + settlingMs
    return members === undefined || !isSettling ? 0 : Math.max(0, targetSize - members)
  }

  #isTooOld(
    { groupId, sinceMs }: { readonly groupId: string; readonly sinceMs: number },
    nowMs: number,
  ): boolean {
    return nowMs > sinceMs + this.#maxProvisionMs(groupId)
  }

  #maxProvisionMs(groupId: string): number {
    return this.#index.options.get(groupId)?.maxNodeProvisionMs ?? this.#options.maxNodeProvisionTimeMs
  }

  #maxStartupMs(groupId: string | undefined): number {
    const own = groupId === undefined ? undefined : this.#index.options.get(groupId)
    return own?.maxNodeStartupMs ?? this.#options.maxNodeStartupTimeMs
  }

  #mayShrink(groupId: string): boolean {
    return !this.#index.holds.has(groupId)
  }

  #isPaused(groupId: string): boolean {
    return this.#index.holds.get(groupId)?.forbids === 'all'
  }

  #endRequests(nowMs: number): readonly TimedOut[] {
    const timedOut: TimedOut[] = []
    for (const request of this.#requests.all()) {
      const group = this.#index.groups.get(request.groupId)
      const readiness = this.readinessOf(request.groupId)
      const isMet = group === undefined || missingNodes(group.targetSize, readiness) <= 0
      const isLate = nowMs > request.deadlineMs
      if (isMet || isLate) this.#requests.remove(request.groupId)
      if (isMet || !isLate) continue
      const absent = group.targetSize - (readiness?.registered.length ?? 0)
      const takesBack = this.#mayShrink(group.id) ? Math.max(0, Math.min(request.increase, absent)) : 0
      const late = { ...request, afterMs: nowMs - request.sinceMs, takesBack }
      timedOut.push(late)
      this.#backoff.fail(request.groupId, { code: 'timeout', message: timeoutText(late) }, nowMs)
    }
    return timedOut
  }

  /** A member that failed without a pending request is only removed. Those of a paused group wait. */
  #reduceByFailures(instances: RegistryInput['instances'], nowMs: number): readonly FailedCreations[] {
    const examined = new Map([...instances].filter(([groupId]) => !this.#isPaused(groupId)))
    const failures = this.#createErrors.update(examined).filter(({ groupId }) => this.hasLiveRequest(groupId))
    for (const { groupId, code, message, count } of failures) {
      this.#requests.add(groupId, -count, nowMs, this.#maxProvisionMs(groupId))
      this.#backoff.fail(groupId, { code, message }, nowMs)
    }
    return failures
  }

  #forgetDeletions(nowMs: number): void {
    for (const [groupId, times] of this.#deletions) {
      const recent = times.filter((atMs) => nowMs - atMs <= deletionMemoryMs)
      if (recent.length === 0) this.#deletions.delete(groupId)
      else this.#deletions.set(groupId, recent)
    }
  }

  #acceptableRanges(): Map<string, AcceptableRange> {
    const entries = [...this.#index.groups.values()].map(({ id, targetSize }) => {
      const longUnregistered = this.readinessOf(id)?.longUnregistered.length ?? 0
      const increase = this.requestOf(id)?.increase ?? 0
      const deletions = this.#deletions.get(id)?.length ?? 0
      return [id, acceptableRange(targetSize, longUnregistered, increase, deletions)] as const
    })
    return new Map(entries)
  }

  /** A group whose members are unknown is not checked. */
  #incorrectSizes(nowMs: number, instances: RegistryInput['instances']): Map<string, IncorrectSize> {
    const next = new Map<string, IncorrectSize>()
    for (const { id, targetSize } of this.#index.groups.values()) {
      const readiness = this.readinessOf(id)
      if (readiness === undefined || !instances.has(id) || !isSizeIncorrect(targetSize, readiness)) continue
      const registered = readiness.registered.length
      const before = this.#incorrect.get(id)
      const isSame = before?.registered === registered && before.target === targetSize
      next.set(id, {
        groupId: id,
        registered,
        target: targetSize,
        sinceMs: isSame ? before.sinceMs : nowMs,
      })
    }
    return next
  }
}

function isStarting({ state, hadNode }: UnregisteredInstance): boolean {
  return !hadNode && (state === 'creating' || state === 'running')
}

/** With seconds, as `--max-node-provision-time` may be less than a minute. */
export function timeoutText({ groupId, afterMs }: Pick<TimedOut, 'groupId' | 'afterMs'>): string {
  const time = durationText(Math.round(afterMs / 1000) * 1000)
  return `Nodes added to group ${groupId} failed to register within ${time}`
}

interface HealthSettings {
  readonly okTotalUnreadyCount: number
  /** 0 to 100. */
  readonly maxTotalUnreadyPercentage: number
}

/** Whether the cluster is healthy enough to be scaled (cluster-autoscaler.md 2.5). */
function isClusterHealthy(totals: Readiness, settings: HealthSettings): boolean {
  return !isTooMany(totals.unready.length, totals.registered.length, settings)
}

/** @param readiness undefined if the group has neither a node nor an instance. */
function isGroupHealthy(
  range: AcceptableRange,
  readiness: Readiness | undefined,
  settings: HealthSettings,
): boolean {
  if (readiness === undefined) return range.target === 0 || (range.min === 0 && range.target > 0)
  const { ready, unready, notStarted, suspended } = readiness
  const missing = Math.max(0, range.min - ready.length - suspended.length)
  const all = ready.length + unready.length + notStarted.length + suspended.length
  return !isTooMany(missing, all, settings)
}

function isTooMany(count: number, all: number, settings: HealthSettings): boolean {
  return count > settings.okTotalUnreadyCount && 100 * count > settings.maxTotalUnreadyPercentage * all
}
