/** Places the members of a group together or not at all (gangs.md 7.2). */
import { labels, normalizedLabel, type PriceSum } from '@tenon/api'
import type { GroupSource } from '../problem/problem.ts'
import type { PodReason } from '../../reasons/reasons.ts'
import { rounding } from '../packing/cheaper.ts'

/** The domain in which the members of a group are tried. */
export type GroupDomain =
  /** Anywhere. */
  | { readonly kind: 'any' }
  /** Nodes whose label has the value. */
  | { readonly kind: 'value'; readonly key: string; readonly value: string }
  /** One new node of the NodePool with this template. */
  | { readonly kind: 'newNode'; readonly template: number }

/** The result for a group. */
export type GroupOutcome =
  /** `held`: the members that only run together; `domain`: the value of the topology key. */
  | { readonly kind: 'placed'; readonly held: readonly number[]; readonly domain: string | undefined }
  | { readonly kind: 'refused'; readonly reason: PodReason }

/** The result for a group, and members beyond the minimum, which are placed like other pods. */
export interface Placed {
  readonly outcome: GroupOutcome
  readonly others: readonly number[]
}

/** A simulation that tries the members of a group. */
export interface Trial {
  /** Starts to note changes, so that they can be undone. */
  begin(): void
  /** Undoes everything since {@link begin}. */
  undo(): void
  /** Keeps everything since {@link begin}. */
  keep(): void
  /** @param domain the same for all pods between two calls of {@link begin}. */
  place(pod: number, domain: GroupDomain): boolean
  /** How much more the claims that changed since {@link begin} cost, and how many more have an unknown price. */
  rise(): PriceSum
  /** Why the pod did not fit. */
  reasonOf(pod: number): PodReason
  uidOf(pod: number): string
  /** Values of a label that existing nodes have or new ones could have, in order. */
  domainsOf(key: string): readonly string[]
  /** The number of templates. */
  readonly templates: number
}

/** The placed members in one domain. */
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
  // If the domain is open, all members should get the same one, and at least one member must choose it.
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

/** Members to place: between `least` and `most`, or none. */
interface Sought {
  readonly members: readonly number[]
  readonly least: number
  readonly most: number
}

/** The domain with the most placed members, which are too few. */
interface Shortage {
  readonly placed: number
  readonly reason: PodReason
  readonly domain: GroupDomain
  /** The first member that did not fit. */
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
        // No later domain can be better.
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

/** Tries the members one by one until enough are placed; in one order only, as kube-scheduler does. */
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

/** More members first, then the lower price; on a tie the first domain. */
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
