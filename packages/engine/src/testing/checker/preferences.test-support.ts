/** What pods gain from the preferences that a decision kept (reports-2.md 15). */
import { normalizedLabel, type Pod, type PodAffinityTerm } from '@tenon/api'
import type { SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import { withoutPreferences } from '../../scheduling/pods/relaxation.ts'
import { claimName } from './claims.test-support.ts'
import { type Located, locate, meet, termSelects } from './topology.test-support.ts'

export function withoutAnyPreference(input: SchedulingInput): SchedulingInput {
  return { ...input, pods: input.pods.map((pod) => ({ ...pod, spec: withoutPreferences(pod.spec) })) }
}

/** What the claims cost on which some pod has what it prefers. Pods of a result keep the preferences that they were placed with. */
export function priceOfFulfilled(input: SchedulingInput, result: SchedulingResult): number {
  const located = locate(input, result)
  const places = new Set(
    located.filter((each) => each.isNew && gains(each, located, input)).map(({ place }) => place),
  )
  return result.claims.reduce(
    (sum, claim, index) => sum + (places.has(claimName(claim, index)) ? (claim.pricePerHour ?? 0) : 0),
    0,
  )
}

function gains(each: Located, located: readonly Located[], input: SchedulingInput): boolean {
  const { affinity, topologySpreadConstraints = [] } = each.pod.spec
  if ((affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).length > 0) return true
  if (topologySpreadConstraints.some(({ whenUnsatisfiable }) => whenUnsatisfiable === 'ScheduleAnyway'))
    return true
  const others = (term: PodAffinityTerm) =>
    located.filter((other) => other.pod !== each.pod && termSelects(term, each.pod, other.pod, input))
  return (
    preferredTerms(each.pod, 'podAffinity').some((term) =>
      others(term).some((other) => meet(each, other, normalizedLabel(term.topologyKey))),
    ) ||
    preferredTerms(each.pod, 'podAntiAffinity').some((term) =>
      others(term).some((other) => mayBeApart(each, other, normalizedLabel(term.topologyKey))),
    )
  )
}

/** Where a new node will be is not always known. */
function mayBeApart(a: Located, b: Located, key: string): boolean {
  return a.place !== b.place && new Set([...a.domains(key), ...b.domains(key)]).size !== 1
}

function preferredTerms({ spec }: Pod, kind: 'podAffinity' | 'podAntiAffinity'): readonly PodAffinityTerm[] {
  const preferred = spec.affinity?.[kind]?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  return preferred.map(({ podAffinityTerm }) => podAffinityTerm)
}
