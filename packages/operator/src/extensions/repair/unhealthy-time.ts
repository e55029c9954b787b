/**
 * For how long nodes were unhealthy in the last hour (wanted.md 2). Conditions only tell of their last stretch, so ended
 * stretches are kept in an annotation of the NodeClaim, which outlasts this process.
 */
import { type Node, type NodeClaim, type NodeCondition, ownValue } from '@tenon/api'
import type { RepairPolicy } from '@tenon/provider'
import { type Clock, perObject } from '@tenon/runtime'

/** Of NodeClaims: ended stretches of unhealthy time, `Ready=False 1764490000-1764490030; …`, in Unix seconds. */
export const unhealthyTimeAnnotation = 'tenon.sh/unhealthy-time'
/** Of NodeClaims: when the instance was last rebooted, RFC 3339. */
export const rebootedAnnotation = 'tenon.sh/rebooted-at'

const windowMs = 60 * 60_000
/** More stretches of a condition are joined, oldest first, with the same sum. */
const mostStretches = 64
const longestText = 20_000
/** A node that flaps is well again once all its conditions have been good for this long. */
const wellAfterMs = 5 * 60_000

/** Unix milliseconds. */
export interface Stretch {
  readonly fromMs: number
  readonly toMs: number
}

/** Ended stretches by policy, as {@link keyOf} names them; oldest first. */
export type Stretches = ReadonlyMap<string, readonly Stretch[]>

/** A condition that asks for a repair. */
export interface Ailment {
  readonly policy: RepairPolicy
  /** When the node turned unhealthy this time, Unix milliseconds. */
  readonly sinceMs: number
  /** When it has been unhealthy for longer than is tolerated, all times of the last hour together; Unix milliseconds. */
  readonly repairAtMs: number
}

const keyOf = ({ conditionType, conditionStatus }: RepairPolicy) => `${conditionType}=${conditionStatus}`

/** `Ready=False`, for people. */
export const ailmentText = ({ policy }: Ailment): string => keyOf(policy)

/** The condition for which the node is repaired first; undefined while all of them are good. */
export function ailmentOf(
  node: Node,
  claim: NodeClaim | undefined,
  policies: readonly RepairPolicy[],
  nowMs: number,
): Ailment | undefined {
  const rebootedMs = claim === undefined ? undefined : rebootedAtMs(claim, nowMs)
  const ailments = policies.flatMap((policy): readonly Ailment[] => {
    const bad = badCondition(node, policy)
    if (bad === undefined) return []
    // What was before a reboot is over, even if the condition has not turned since.
    const sinceMs = Math.max(transitionMs(bad) ?? 0, rebootedMs ?? 0)
    const fromMs = Math.max(nowMs - windowMs, rebootedMs ?? 0)
    const before = claim === undefined ? [] : (stretchesOf(claim).get(keyOf(policy)) ?? [])
    const repairAtMs = sinceMs + policy.tolerationMs - totalMs(before, fromMs, sinceMs)
    return [{ policy, sinceMs, repairAtMs }]
  })
  return ailments.toSorted((a, b) => a.repairAtMs - b.repairAtMs)[0]
}

/**
 * Whether a node that turned unhealthy several times in the last hour, for longer than is tolerated, may only look well:
 * its conditions have been good for less than five minutes.
 */
export function isFlapping(claim: NodeClaim, policies: readonly RepairPolicy[], nowMs: number): boolean {
  const fromMs = Math.max(nowMs - windowMs, rebootedAtMs(claim, nowMs) ?? 0)
  return policies.some((policy) => {
    const recent = (stretchesOf(claim).get(keyOf(policy)) ?? []).filter(({ toMs }) => toMs > fromMs)
    const lastMs = recent.at(-1)?.toMs
    return (
      recent.length > 1 &&
      lastMs !== undefined &&
      nowMs - lastMs < wellAfterMs &&
      totalMs(recent, fromMs, nowMs) >= policy.tolerationMs
    )
  })
}

/** Stretches that ended with a change of the Node, by policy. */
export function endedStretches(
  old: Node,
  node: Node,
  policies: readonly RepairPolicy[],
  clock: Pick<Clock, 'now'>,
): Stretches {
  const ended = policies.flatMap((policy): readonly [string, readonly Stretch[]][] => {
    const before = badCondition(old, policy)
    if (before === undefined || badCondition(node, policy) !== undefined) return []
    const now = clock.now()
    const good = node.status?.conditions?.find(({ type }) => type === policy.conditionType)
    const fromMs = transitionMs(before)
    const toMs = Math.min(now, (good && transitionMs(good)) ?? now)
    return fromMs === undefined || fromMs >= toMs ? [] : [[keyOf(policy), [{ fromMs, toMs }]]]
  })
  return new Map(ended)
}

/** Both lists, without what ended before the last hour. */
export function joinedStretches(a: Stretches, b: Stretches, nowMs: number): Stretches {
  const keys = new Set([...a.keys(), ...b.keys()])
  return new Map(
    [...keys].flatMap((key): readonly [string, readonly Stretch[]][] => {
      const recent = [...(a.get(key) ?? []), ...(b.get(key) ?? [])]
        .filter(({ toMs }) => toMs > nowMs - windowMs)
        .toSorted((one, other) => one.fromMs - other.fromMs)
      return recent.length === 0 ? [] : [[key, shortened(recent)]]
    }),
  )
}

/** Joins the oldest stretches to one that ends with them and is as long as all of them. */
function shortened(stretches: readonly Stretch[]): readonly Stretch[] {
  const surplus = stretches.length - mostStretches
  if (surplus <= 0) return stretches
  const oldest = stretches.slice(0, surplus + 1)
  const toMs = oldest.at(-1)?.toMs ?? 0
  const sum = oldest.reduce((total, each) => total + each.toMs - each.fromMs, 0)
  return [{ fromMs: toMs - sum, toMs }, ...stretches.slice(surplus + 1)]
}

export function stretchesText(stretches: Stretches): string {
  return Array.from(
    stretches,
    ([key, all]) =>
      `${key} ${all.map(({ fromMs, toMs }) => `${inSeconds(fromMs)}-${inSeconds(toMs)}`).join(' ')}`,
  ).join('; ')
}

/** What the annotation says; parts of it that cannot be read count as absent. */
export const stretchesOf = perObject(({ metadata }: NodeClaim): Stretches => {
  const text: unknown = ownValue(metadata.annotations, unhealthyTimeAnnotation)
  if (typeof text !== 'string' || text.length > longestText) return new Map()
  return new Map(
    text.split(';').flatMap((part): readonly [string, readonly Stretch[]][] => {
      const [key = '', ...spans] = part.trim().split(' ')
      const stretches = spans.flatMap((span) => {
        const [, from = '', to = ''] = /^(\d{1,11})-(\d{1,11})$/.exec(span) ?? []
        const stretch = { fromMs: Number(from) * 1000, toMs: Number(to) * 1000 }
        return stretch.fromMs < stretch.toMs ? [stretch] : []
      })
      return stretches.length === 0 ? [] : [[key, stretches.toSorted((a, b) => a.fromMs - b.fromMs)]]
    }),
  )
})

/** Unix milliseconds; undefined if the instance was not rebooted, or that cannot be read. */
export function rebootedAtMs({ metadata }: NodeClaim, nowMs: number): number | undefined {
  const text: unknown = ownValue(metadata.annotations, rebootedAnnotation)
  const ms = typeof text === 'string' ? Date.parse(text) : Number.NaN
  return ms <= nowMs ? ms : undefined
}

function badCondition(
  node: Node,
  { conditionType, conditionStatus }: RepairPolicy,
): NodeCondition | undefined {
  return node.status?.conditions?.find(
    ({ type, status }) => type === conditionType && status === conditionStatus,
  )
}

function transitionMs({ lastTransitionTime }: NodeCondition): number | undefined {
  const ms = Date.parse(lastTransitionTime ?? '')
  return Number.isNaN(ms) ? undefined : ms
}

/** How much of the stretches lies between two times. */
function totalMs(stretches: readonly Stretch[], fromMs: number, untilMs: number): number {
  return stretches.reduce(
    (sum, each) => sum + Math.max(0, Math.min(each.toMs, untilMs) - Math.max(each.fromMs, fromMs)),
    0,
  )
}

const inSeconds = (ms: number): number => Math.round(ms / 1000)
