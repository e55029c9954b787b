/** Limits and budgets of NodePools are respected. */
import {
  type Budget,
  type DisruptionReason,
  type NodeClaim,
  parseNillableDuration,
  parseResources,
  type Pod,
} from '@tenon/api'
import { allowedDisruptions } from '@tenon/engine'
import { disruptionReasonOf, isOfDaemonSet, isVoluntary } from './pods.ts'
import { poolOf } from './instances.ts'
import { predecessorsOf } from './replacements.ts'
import { annotation, clockErrorMs, type Invariant, quietMs } from './scene.ts'

/** Recent values, with the time from which on each was valid. */
class History<T> {
  readonly #entries: { readonly sinceMs: number; readonly value: T }[] = []

  set(nowMs: number, value: T): void {
    this.#entries.push({ sinceMs: nowMs, value })
  }

  /** All values that were valid at some time from `fromMs` on. */
  from(fromMs: number): readonly T[] {
    let first = this.#entries.findLastIndex(({ sinceMs }) => sinceMs <= fromMs)
    if (first < 0) first = 0
    return this.#entries.slice(first).map(({ value }) => value)
  }
}

/** One history for each name. */
export function histories<T>(): (key: string) => History<T> {
  const known = new Map<string, History<T>>()
  return (key) => {
    const history = known.get(key) ?? new History<T>()
    known.set(key, history)
    return history
  }
}

/**
 * The instances of a pool stay within the limits at the creation of the last NodeClaim. Nodes that were marked
 * for removal at that time do not count, even if their command was cancelled since.
 */
export const limitsKept: Invariant = ({ world, clock, blindMs, violate }) => {
  const limitsOf = histories<Readonly<Record<string, string>> | undefined>()
  /** When the last command about a claim was cancelled, by name. */
  const takenBackMs = new Map<string, number>()
  // All claims are summed up for each new one.
  const cpuIn = new WeakMap<object, number>()
  const cpuOf = ({ status }: NodeClaim): number => {
    const { capacity } = status ?? {}
    if (capacity === undefined) return 0
    const cpu = cpuIn.get(capacity) ?? parseResources(capacity)['cpu'] ?? 0
    cpuIn.set(capacity, cpu)
    return cpu
  }
  return {
    pool(now) {
      if (now !== undefined) limitsOf(now.metadata.name).set(clock.monotonic(), now.spec.limits)
    },
    claim(now, before) {
      if (now !== undefined && before !== undefined && isVoluntary(before) && !isVoluntary(now))
        takenBackMs.set(now.metadata.name, clock.monotonic())
      if (now?.status?.capacity === undefined || before?.status?.capacity !== undefined) return
      if (predecessorsOf(now).length > 0) return
      const pool = poolOf(now)
      const ageMs = clock.now() - Date.parse(now.metadata.creationTimestamp ?? '')
      const createdMs = clock.monotonic() - ageMs - blindMs
      const held = limitsOf(pool).from(createdMs)
      if (held.length === 0 || held.some((limits) => limits?.['cpu'] === undefined)) return
      const most = Math.max(...held.map((limits) => parseResources(limits)['cpu'] ?? 0))
      const used = world
        .claims()
        .filter((claim) => poolOf(claim) === pool && claim.metadata.deletionTimestamp === undefined)
        .filter((claim) => !isVoluntary(claim))
        .filter(({ metadata }) => (takenBackMs.get(metadata.name) ?? Number.NEGATIVE_INFINITY) < createdMs)
        .reduce((sum, claim) => sum + cpuOf(claim), 0)
      if (used > most)
        violate(
          'limitsKept',
          `NodePool ${pool} has ${used}m CPU, ${most}m are allowed; last came ${now.metadata.name}`,
        )
    },
  }
}

const isTrue = (claim: NodeClaim, name: string): boolean =>
  (claim.status?.conditions ?? []).some(({ type, status }) => type === name && status === 'True')

/** No more nodes are disrupted at once than the budgets of their pool allow. */
export const budgetsKept: Invariant = ({ world, clock, blindMs, violate, claimByName }) => {
  const budgetsOf = histories<{
    readonly budgets: readonly Budget[]
    readonly timeZone: string | undefined
  }>()
  const totals = histories<number>()
  const ofPool = (pool: string): readonly NodeClaim[] =>
    world
      .claims()
      .filter(
        (claim) =>
          poolOf(claim) === pool && isTrue(claim, 'Initialized') && !isTrue(claim, 'InstanceTerminating'),
      )
  /** Names of the claims that count, by pool. */
  const counted = new Map<string, Set<string>>()
  return {
    claim(now, before) {
      const claim = (now ?? before) as NodeClaim
      const names = counted.get(poolOf(claim)) ?? new Set<string>()
      counted.set(poolOf(claim), names)
      const { name } = claim.metadata
      if (now !== undefined && isTrue(now, 'Initialized') && !isTrue(now, 'InstanceTerminating'))
        names.add(name)
      else names.delete(name)
    },
    pool(now) {
      const budgets = now?.spec.disruption?.budgets ?? [{ nodes: '10%' }]
      if (now === undefined) return
      const timeZone = annotation(now, 'tenon.sh/time-zone')
      budgetsOf(now.metadata.name).set(clock.monotonic(), { budgets, timeZone })
    },
    minute() {
      for (const [pool, names] of counted) totals(pool).set(clock.monotonic(), names.size)
    },
    apiWrite({ method, plural, name = '' }) {
      if (method !== 'DELETE' || plural !== 'nodeclaims') return
      const claim = claimByName(name)
      if (claim === undefined || !isVoluntary(claim) || claim.metadata.deletionTimestamp !== undefined) return
      const pool = poolOf(claim)
      const claims = ofPool(pool)
      const going = claims.filter(
        (each) => each.metadata.deletionTimestamp !== undefined && isVoluntary(each),
      ).length
      const reason = claim.status?.conditions?.find(({ type }) => type === 'DisruptionReason')?.reason
      // Budgets do not concern repairs (wanted.md 2).
      if (reason === 'Unhealthy') return
      const from = clock.monotonic() - 2 * blindMs
      const total = Math.max(claims.length, ...totals(pool).from(from))
      const allowed = Math.max(
        ...budgetsOf(pool)
          .from(from)
          .flatMap(({ budgets, timeZone }) => {
            // Schedules hold when a node is chosen, and its replacement takes time.
            const hasSchedule = budgets.some(({ schedule }) => schedule !== undefined)
            const backMs = hasSchedule ? longestCommandMs + 2 * blindMs + clockErrorMs : 0
            const times = [clock.now() + (hasSchedule ? clockErrorMs : 0)]
            for (let ms = 0; ms <= backMs; ms += 30_000) times.push(clock.now() - ms)
            return times.map((ms) =>
              allowedDisruptions(budgets, reason as DisruptionReason, total, ms, timeZone),
            )
          }),
      )
      if (going + 1 > allowed)
        violate(
          'budgetsKept',
          `NodeClaim ${name} of NodePool ${pool} is the ${going + 1}. to go, ${allowed} may`,
        )
    },
  }
}

/**
 * An empty node stays for `consolidateAfter` plus the pause before validation. Pod events in quick succession
 * count as one, so a node may be removed that much earlier. Events without a leader are not stored: the next
 * leader counts from what is stored (lifecycle.md, `podevents`).
 */
export const consolidateAfterKept: Invariant = ({
  clock,
  blindMs,
  violate,
  viewsMayBeWrong,
  claimByName,
  nodeByProviderId,
}) => {
  const pauses = histories<number>()
  const lastEventAt = new Map<string, number>()
  const toleranceMs = podEventsMs + (blindMs > quietMs ? 2 * blindMs : 1000)
  return {
    pool(now) {
      if (now === undefined) return
      const afterMs = parseNillableDuration(now.spec.disruption?.consolidateAfter ?? '0s')
      pauses(now.metadata.name).set(clock.monotonic(), afterMs ?? 0)
    },
    pod(now, before) {
      const nodeName = now?.spec.nodeName
      if (nodeName === undefined || isOfDaemonSet(now as Pod)) return
      const isBound = before?.spec.nodeName === undefined
      const isTold = now?.metadata.deletionTimestamp !== before?.metadata.deletionTimestamp
      if (isBound || isTold) lastEventAt.set(nodeName, clock.monotonic())
    },
    apiWrite({ process, method, plural, name = '' }) {
      if (method !== 'DELETE' || plural !== 'nodeclaims') return
      const claim = claimByName(name)
      if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return
      // The pods of the node are read again before it is removed; recently deleted ones are unknown then.
      if (disruptionReasonOf(claim) !== 'Empty' || viewsMayBeWrong()) return
      const node = nodeByProviderId(claim.status?.providerID ?? '')?.metadata.name ?? ''
      const at = lastEventAt.get(node) ?? Number.NEGATIVE_INFINITY
      const isFollowed = at >= (process.leadsSinceMs ?? 0)
      const held = pauses(poolOf(claim)).from(clock.monotonic() - 2 * blindMs - secondLookMs)
      const leastMs = Math.min(...held) + secondLookMs - toleranceMs
      const quietForMs = isFollowed ? clock.monotonic() - at : clock.now() - notedEventOf(claim)
      if (quietForMs < (isFollowed ? leastMs : leastMs - clockErrorMs))
        violate(
          'consolidateAfterKept',
          `node ${node} goes as empty ${quietForMs} ms after the last pod left, ${leastMs} ms were to pass`,
        )
    },
  }
}

/** A command waits for its replacements for so long at most. */
const longestCommandMs = 11 * 60_000

/** Wall time of the last stored pod event, or of the initialization. */
const notedEventOf = ({ status }: NodeClaim): number =>
  Date.parse(
    status?.lastPodEventTime ??
      status?.conditions?.find(({ type }) => type === 'Initialized')?.lastTransitionTime ??
      '',
  )

/** Pause between the decision to remove an empty node and its validation. */
const secondLookMs = 15_000
/** Pod events within this time of the previous one are not stored (disruption.md 7). */
const podEventsMs = 10_000
