/** NodePools: limits and budgets hold. */
import { type Budget, type DisruptionReason, type NodeClaim, parseResources } from '@tenon/api'
import { allowedDisruptions } from '@tenon/engine'
import { isVoluntary } from './pods.ts'
import { poolOf } from './instances.ts'
import { blindMs, type Invariant } from './scene.ts'

/** Values of the recent past, with the time from which on each held. */
class History<T> {
  readonly #entries: { readonly sinceMs: number; readonly value: T }[] = []

  set(nowMs: number, value: T): void {
    this.#entries.push({ sinceMs: nowMs, value })
  }

  /** What held at any time from `fromMs` on. */
  from(fromMs: number): readonly T[] {
    let first = this.#entries.findLastIndex(({ sinceMs }) => sinceMs <= fromMs)
    if (first < 0) first = 0
    return this.#entries.slice(first).map(({ value }) => value)
  }
}

function histories<T>(): (key: string) => History<T> {
  const known = new Map<string, History<T>>()
  return (key) => {
    const history = known.get(key) ?? new History<T>()
    known.set(key, history)
    return history
  }
}

/** What a pool's machines have together stays within the limits that held when the last was asked for. */
export const limitsKept: Invariant = ({ world, clock, violate }) => {
  const limitsOf = histories<Readonly<Record<string, string>> | undefined>()
  return {
    pool(now) {
      if (now !== undefined) limitsOf(now.metadata.name).set(clock.monotonic(), now.spec.limits)
    },
    claim(now, before) {
      if (now?.status?.capacity === undefined || before?.status?.capacity !== undefined) return
      const pool = poolOf(now)
      const ageMs = clock.now() - Date.parse(now.metadata.creationTimestamp ?? '')
      const held = limitsOf(pool).from(clock.monotonic() - ageMs - blindMs)
      if (held.length === 0 || held.some((limits) => limits?.['cpu'] === undefined)) return
      const most = Math.max(...held.map((limits) => parseResources(limits)['cpu'] ?? 0))
      const used = world
        .claims()
        .filter((claim) => poolOf(claim) === pool && claim.metadata.deletionTimestamp === undefined)
        .reduce((sum, claim) => sum + (parseResources(claim.status?.capacity)['cpu'] ?? 0), 0)
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
export const budgetsKept: Invariant = ({ world, clock, violate, claimByName }) => {
  const budgetsOf = histories<readonly Budget[]>()
  const totals = histories<number>()
  const ofPool = (pool: string): readonly NodeClaim[] =>
    world
      .claims()
      .filter(
        (claim) =>
          poolOf(claim) === pool && isTrue(claim, 'Initialized') && !isTrue(claim, 'InstanceTerminating'),
      )
  return {
    pool(now) {
      const budgets = now?.spec.disruption?.budgets ?? [{ nodes: '10%' }]
      if (now !== undefined) budgetsOf(now.metadata.name).set(clock.monotonic(), budgets)
    },
    minute() {
      const pools = new Set(world.claims().map(poolOf))
      for (const pool of pools) totals(pool).set(clock.monotonic(), ofPool(pool).length)
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
      const from = clock.monotonic() - 2 * blindMs
      const total = Math.max(claims.length, ...totals(pool).from(from))
      const allowed = Math.max(
        ...budgetsOf(pool)
          .from(from)
          .map((budgets) => allowedDisruptions(budgets, reason as DisruptionReason, total, clock.now())),
      )
      if (going + 1 > allowed)
        violate(
          'budgetsKept',
          `NodeClaim ${name} of NodePool ${pool} is the ${going + 1}. to go, ${allowed} may`,
        )
    },
  }
}
