/** Places the members of a group all together or not at all (gangs.md 7.2). */
import { labels, normalizedLabel, type PriceSum } from '@tenon/api'
import type { GroupSource } from '../problem/problem.ts'
import type { PodReason } from '../../reasons/reasons.ts'
import { rounding } from '../packing/cheaper.ts'

/** Where members of a group are tried. */
export type GroupDomain =
  /** Anywhere. */
  | { readonly kind: 'any' }
  /** Nodes whose label has the value. */
  | { readonly kind: 'value'; readonly key: string; readonly value: string }
  /** One new node of the NodePool with this template. */
  | { readonly kind: 'newNode'; readonly template: number }

/** What became of a group. */
export type GroupOutcome =
  /** `held`: the members without which no other runs; `domain`: the value of the topology key. */
  | { readonly kind: 'placed'; readonly held: readonly number[]; readonly domain: string | undefined }
  | { readonly kind: 'refused'; readonly reason: PodReason }

/** A group that was placed, and what of it is left to be placed like other pods. */
export interface Placed {
  readonly outcome: GroupOutcome
  readonly others: readonly number[]
}

/** What the simulation does for a group that is tried. */
export interface Trial {
  /** Where all can be undone that is tried from here on. */
  begin(): void
  /** Takes back everything since {@link begin}. */
  undo(): void
  /** Keeps it. */
  keep(): void
  /** @param domain the same for all pods between two calls of {@link begin}. */
  place(pod: number, domain: GroupDomain): boolean
  /** What the claims that were opened or filled since {@link begin} cost more than before, in known prices and in number. */
  rise(): PriceSum
  /** Why the pod, which found no place, found none. */
  reasonOf(pod: number): PodReason
  uidOf(pod: number): string
  /** Values that a label of nodes has or could have, in order. */
  domainsOf(key: string): readonly string[]
  /** Templates that could launch a node. */
  readonly templates: number
}

/** How far members came in one domain. */
interface Attempt {
  readonly domain: GroupDomain
  readonly placed: readonly number[]
  readonly rise: PriceSum
}

const anywhere: GroupDomain = { kind: 'any' }

/**
 * @param members pods of the group that can be read, in the order in which they are tried.
 */
export function placeGroup(group: GroupSource, members: readonly number[], trial: Trial): Placed {
  const { id, minCount, bound, topology } = group
  if (members.length < group.need)
    return refused({ kind: 'podGroupShort', group: id, members: members.length, bound, minCount })
  if (topology === undefined) return placeIn(group, members, [anywhere], trial)
  const key = normalizedLabel(topology.key)
  const { domain } = topology
  if (domain !== undefined) return placeIn(group, members, [{ kind: 'value', key, value: domain }], trial)
  const values = trial.domainsOf(key).map((value): GroupDomain => ({ kind: 'value', key, value }))
  const isHost = key === labels.hostname
  const newNodes = Array.from(
    { length: isHost ? trial.templates : 0 },
    (_, template): GroupDomain => ({ kind: 'newNode', template }),
  )
  const domains = [...values, ...newNodes]
  if (domains.length === 0) return refused({ kind: 'podGroupTopology', group: id, key })
  return placeIn(group, members, domains, trial)
}

function placeIn(
  group: GroupSource,
  members: readonly number[],
  domains: readonly GroupDomain[],
  trial: Trial,
): Placed {
  const { id, need, bound, minCount, topology } = group
  // Where members choose a domain, all of them do; one at least shows that it is one.
  const isOpen = topology !== undefined && topology.domain === undefined
  const sought: Sought = isOpen
    ? { members, least: Math.max(need, 1), most: members.length }
    : { members, least: need, most: need }
  const { best, furthest } = searched(sought, domains, trial)
  if (best === undefined) {
    const { placed, reason: because, domain, pod }: Shortage = furthest ?? nothingTried
    const at = domain.kind === 'value' ? { key: domain.key, domain: domain.value } : {}
    const member = pod === undefined ? {} : { member: trial.uidOf(pod) }
    return refused({ kind: 'podGroup', group: id, placed, bound, minCount, ...at, ...member, because })
  }
  const { domain, placed } = best
  const isPlaced = new Set(placed)
  return {
    outcome: {
      kind: 'placed',
      held: placed.slice(0, need),
      domain: domain.kind === 'value' ? domain.value : undefined,
    },
    others: members.filter((pod) => !isPlaced.has(pod)),
  }
}

/** Members to place: at least so many or none, and no more than `most`. */
interface Sought {
  readonly members: readonly number[]
  readonly least: number
  readonly most: number
}

/** How far members came where they were too few. */
interface Shortage {
  readonly placed: number
  readonly reason: PodReason
  readonly domain: GroupDomain
  /** The first that found no place. */
  readonly pod: number | undefined
}

const nothingTried: Shortage = {
  placed: 0,
  reason: { kind: 'unexplained' },
  domain: anywhere,
  pod: undefined,
}

/** Places the members in the best of the domains. */
function searched(
  sought: Sought,
  domains: readonly GroupDomain[],
  trial: Trial,
): { readonly best: Attempt | undefined; readonly furthest: Shortage | undefined } {
  let best: Attempt | undefined
  let furthest: Shortage | undefined
  for (const domain of domains) {
    trial.begin()
    const { placed, failed } = tried(sought, domain, trial)
    if (placed.length >= sought.least) {
      const attempt = { domain, placed, rise: trial.rise() }
      if (best === undefined || isBetter(attempt, best)) {
        best = attempt
        // Nothing that follows can be better.
        if (domains.length === 1 || (isFree(attempt.rise) && placed.length === sought.most)) {
          trial.keep()
          return { best, furthest }
        }
      }
    } else if (failed !== undefined && placed.length > (furthest?.placed ?? -1))
      furthest = { placed: placed.length, reason: trial.reasonOf(failed), domain, pod: failed }
    trial.undo()
  }
  if (best === undefined) return { best, furthest }
  trial.begin()
  const { placed } = tried(sought, best.domain, trial)
  if (placed.length !== best.placed.length) throw new Error('what was taken back is not as it was before')
  trial.keep()
  return { best: { ...best, placed }, furthest }
}

/** Tries members one by one until enough have a place; as the scheduler does, in one order only. */
function tried(
  { members, most }: Sought,
  domain: GroupDomain,
  trial: Trial,
): { readonly placed: readonly number[]; readonly failed: number | undefined } {
  const placed: number[] = []
  let failed: number | undefined
  for (const pod of members) {
    if (placed.length === most) break
    if (trial.place(pod, domain)) placed.push(pod)
    else failed ??= pod
  }
  return { placed, failed }
}

/** Most members, then the least price; the first of equal ones. */
function isBetter(a: Attempt, b: Attempt): boolean {
  if (a.placed.length !== b.placed.length) return a.placed.length > b.placed.length
  if (a.rise.unpriced !== b.rise.unpriced) return a.rise.unpriced < b.rise.unpriced
  return a.rise.pricePerHour < b.rise.pricePerHour - rounding
}

function isFree({ pricePerHour, unpriced }: PriceSum): boolean {
  return unpriced === 0 && pricePerHour <= rounding
}

function refused(reason: PodReason): Placed {
  return { outcome: { kind: 'refused', reason }, others: [] }
}
