/** Giving up a pod's wishes one by one (scheduling.md 6.4). */
import type { Affinity, NodeSelectorTerm, PodSpec } from '@tenon/api'

/**
 * The pod with one wish less, or undefined when nothing is left to give up.
 * @param whole the pod with all its wishes.
 * @param toleratePreferNoSchedule whether some NodePool has a `PreferNoSchedule` taint.
 */
export function relax(spec: PodSpec, whole: PodSpec, toleratePreferNoSchedule: boolean): PodSpec | undefined {
  return (
    withoutFirstTerm(spec) ??
    withoutHeaviest(spec, 'podAffinity') ??
    withoutHeaviest(spec, 'podAntiAffinity') ??
    withoutPreferredNodeAffinity(spec) ??
    withoutSoftSpread(spec) ??
    (toleratePreferNoSchedule ? withPreferNoScheduleToleration(spec) : undefined) ??
    withEarlierTerms(spec, whole)
  )
}

/** The terms before the last were tried only beside the wishes, and a preference blocks none of them (reports.md 2). */
function withEarlierTerms(spec: PodSpec, whole: PodSpec): PodSpec | undefined {
  const last = textOf(requiredTerms(whole).at(-1))
  // Terms that say the same as the last would lead back to it.
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

/** The pod without every preference, as policy `Ignore` sees it. */
export function withoutPreferences(spec: PodSpec): PodSpec {
  let current = spec
  for (;;) {
    const next =
      withoutHeaviest(current, 'podAffinity') ??
      withoutHeaviest(current, 'podAntiAffinity') ??
      withoutPreferredNodeAffinity(current) ??
      withoutSoftSpread(current)
    if (next === undefined) return current
    current = next
  }
}

function withAffinity(spec: PodSpec, part: Partial<Affinity>): PodSpec {
  return { ...spec, affinity: { ...spec.affinity, ...part } }
}

function withoutFirstTerm(spec: PodSpec): PodSpec | undefined {
  const nodeAffinity = spec.affinity?.nodeAffinity
  const terms = requiredTerms(spec)
  if (terms.length < 2) return undefined
  return withAffinity(spec, {
    nodeAffinity: {
      ...nodeAffinity,
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms.slice(1) },
    },
  })
}

/** The list less its heaviest entry; among equals the first goes. */
function lessHeaviest<T extends { readonly weight: number }>(
  list: readonly T[] | undefined,
): T[] | undefined {
  if (list === undefined || list.length === 0) return undefined
  return list.toSorted((a, b) => b.weight - a.weight).slice(1)
}

function withoutHeaviest(spec: PodSpec, kind: 'podAffinity' | 'podAntiAffinity'): PodSpec | undefined {
  const rest = lessHeaviest(spec.affinity?.[kind]?.preferredDuringSchedulingIgnoredDuringExecution)
  if (rest === undefined) return undefined
  return withAffinity(spec, {
    [kind]: { ...spec.affinity?.[kind], preferredDuringSchedulingIgnoredDuringExecution: rest },
  })
}

function withoutPreferredNodeAffinity(spec: PodSpec): PodSpec | undefined {
  const nodeAffinity = spec.affinity?.nodeAffinity
  const rest = lessHeaviest(nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution)
  if (rest === undefined) return undefined
  return withAffinity(spec, {
    nodeAffinity: { ...nodeAffinity, preferredDuringSchedulingIgnoredDuringExecution: rest },
  })
}

function withoutSoftSpread(spec: PodSpec): PodSpec | undefined {
  const constraints = spec.topologySpreadConstraints ?? []
  const index = constraints.findIndex((constraint) => constraint.whenUnsatisfiable === 'ScheduleAnyway')
  if (index < 0) return undefined
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
