/** Relaxes the preferences of a pod one by one (scheduling.md 6.4). */
import type { Affinity, NodeSelectorTerm, PodSpec } from '@tenon/api'

/** Longer lists of preferences lose half of them at once. */
const mostOneByOne = 64

/** The node affinity terms that are still to be tried: all terms, and the index of the next. */
interface LeftTerms {
  readonly all: readonly NodeSelectorTerm[]
  readonly from: number
}

/**
 * By the list in a relaxed spec, which only contains the next term: with thousands of terms, copying the remaining ones
 * for each relaxation would use too much memory.
 */
const leftByList = new WeakMap<readonly NodeSelectorTerm[], LeftTerms>()

/** The terms that are still to be tried. */
export function leftTerms(spec: PodSpec): LeftTerms {
  const list = requiredTerms(spec)
  return leftByList.get(list) ?? { all: list, from: 0 }
}

/** Whether the next relaxation drops one of several terms. */
export function hasOtherTerm(spec: PodSpec): boolean {
  const { all, from } = leftTerms(spec)
  return from + 1 < all.length
}

/**
 * The spec with one preference less, or undefined when nothing is left to relax.
 * @param whole the spec before relaxation.
 * @param toleratePreferNoSchedule whether some NodePool has a `PreferNoSchedule` taint.
 */
export function relax(spec: PodSpec, whole: PodSpec, toleratePreferNoSchedule: boolean): PodSpec | undefined {
  return (
    withoutFirstTerm(spec) ??
    withoutOnePreference(spec) ??
    (toleratePreferNoSchedule ? withPreferNoScheduleToleration(spec) : undefined) ??
    withEarlierTerms(spec, whole)
  )
}

/**
 * Earlier terms were only tried with all preferences and without tolerating PreferNoSchedule, so they are tried again
 * (reports.md 2).
 */
function withEarlierTerms(spec: PodSpec, whole: PodSpec): PodSpec | undefined {
  const isRelaxed =
    withoutOnePreference(whole) !== undefined || spec.tolerations?.length !== whole.tolerations?.length
  if (requiredTerms(whole).length < 2 || !isRelaxed) return undefined
  const last = textOf(requiredTerms(whole).at(-1))
  // Terms equal to the last one would lead back to it.
  const earlier = requiredTerms(whole).filter((term) => textOf(term) !== last)
  if (earlier.length === 0 || textOf(requiredTerms(spec)[0]) !== last) return undefined
  const nodeAffinity = spec.affinity?.nodeAffinity
  return withAffinity(spec, {
    nodeAffinity: {
      ...nodeAffinity,
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: earlier },
    },
  })
}

const textOf = (term: NodeSelectorTerm | undefined): string | undefined => JSON.stringify(term)

function requiredTerms(spec: PodSpec): readonly NodeSelectorTerm[] {
  return spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
}

/** The spec without any preference, for policy `Ignore`. */
export function withoutPreferences(spec: PodSpec): PodSpec {
  let current = spec
  for (;;) {
    const next = withoutOnePreference(current)
    if (next === undefined) return current
    current = next
  }
}

function withoutOnePreference(spec: PodSpec): PodSpec | undefined {
  return (
    withoutHeaviest(spec, 'podAffinity') ??
    withoutHeaviest(spec, 'podAntiAffinity') ??
    withoutPreferredNodeAffinity(spec) ??
    withoutSoftSpread(spec)
  )
}

function withAffinity(spec: PodSpec, part: Partial<Affinity>): PodSpec {
  return { ...spec, affinity: { ...spec.affinity, ...part } }
}

function withoutFirstTerm(spec: PodSpec): PodSpec | undefined {
  const nodeAffinity = spec.affinity?.nodeAffinity
  const { all, from } = leftTerms(spec)
  const term = all[from + 1]
  if (term === undefined) return undefined
  const nodeSelectorTerms = [term]
  leftByList.set(nodeSelectorTerms, { all, from: from + 1 })
  return withAffinity(spec, {
    nodeAffinity: {
      ...nodeAffinity,
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms },
    },
  })
}

/** The list without its heaviest entry; of equal ones without the first. */
function withoutHeaviestEntry<T extends { readonly weight: number }>(
  list: readonly T[] | undefined,
): T[] | undefined {
  if (list === undefined || list.length === 0) return undefined
  const givenUp = list.length > mostOneByOne ? list.length >> 1 : 1
  return list.toSorted((a, b) => b.weight - a.weight).slice(givenUp)
}

function withoutHeaviest(spec: PodSpec, kind: 'podAffinity' | 'podAntiAffinity'): PodSpec | undefined {
  const rest = withoutHeaviestEntry(spec.affinity?.[kind]?.preferredDuringSchedulingIgnoredDuringExecution)
  if (rest === undefined) return undefined
  return withAffinity(spec, {
    [kind]: { ...spec.affinity?.[kind], preferredDuringSchedulingIgnoredDuringExecution: rest },
  })
}

function withoutPreferredNodeAffinity(spec: PodSpec): PodSpec | undefined {
  const nodeAffinity = spec.affinity?.nodeAffinity
  const rest = withoutHeaviestEntry(nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution)
  if (rest === undefined) return undefined
  return withAffinity(spec, {
    nodeAffinity: { ...nodeAffinity, preferredDuringSchedulingIgnoredDuringExecution: rest },
  })
}

function withoutSoftSpread(spec: PodSpec): PodSpec | undefined {
  const constraints = spec.topologySpreadConstraints ?? []
  const isSoft = (constraint: (typeof constraints)[number]) =>
    constraint.whenUnsatisfiable === 'ScheduleAnyway'
  const index = constraints.findIndex(isSoft)
  if (index < 0) return undefined
  if (constraints.length > mostOneByOne) {
    const soft = constraints.filter(isSoft)
    const givenUp = new Set(soft.slice(0, Math.max(1, soft.length >> 1)))
    return { ...spec, topologySpreadConstraints: constraints.filter((each) => !givenUp.has(each)) }
  }
  const last = constraints.length - 1
  const rest = constraints.slice(0, last)
  if (index < last) rest[index] = constraints[last] as (typeof constraints)[number]
  return { ...spec, topologySpreadConstraints: rest }
}

function withPreferNoScheduleToleration(spec: PodSpec): PodSpec | undefined {
  const tolerations = spec.tolerations ?? []
  const present = tolerations.some(
    (t) => t.operator === 'Exists' && t.effect === 'PreferNoSchedule' && (t.key ?? '') === '',
  )
  if (present) return undefined
  return { ...spec, tolerations: [...tolerations, { operator: 'Exists', effect: 'PreferNoSchedule' }] }
}
