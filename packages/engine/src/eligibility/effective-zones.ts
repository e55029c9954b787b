/** The zone of a pending pod, reported before anything is placed (scheduling.md 12.4). */
import { labels, type Pod } from '@tenon/api'
import { intersection, oneOf, type ValueSet, valueSet } from '../requirements/requirement.ts'
import { requiredAlternatives, requirementsOf } from '../requirements/requirements.ts'
import type { PodVolumes } from '../input/input.ts'

/**
 * The only zone that a valid pod can use; `flexible` for several or any zone, `none` if there is none. @param
 * topologyZones zones that the pod's topology rules allow; undefined for all.
 */
export function effectiveZone(
  pod: Pod,
  volumes: PodVolumes | undefined,
  topologyZones?: ReadonlySet<string>,
): string {
  const terms = requiredAlternatives(pod.spec).map((term) => term.get(labels.zone))
  const affinity = terms.length === 1 ? terms[0] : union(terms)
  const storage = union(
    (volumes?.alternatives ?? []).map((term) =>
      requirementsOf(term.map((expression) => valueSet(expression))).get(labels.zone),
    ),
  )
  const topology = topologyZones === undefined ? undefined : oneOf(labels.zone, ...topologyZones)
  const bounds = [affinity, storage, topology].filter((set) => set !== undefined)
  const [first, ...others] = bounds
  if (first === undefined) return 'flexible'
  const zones = others.reduce(intersection, first)
  if (zones.complement || zones.values.size > 1) return 'flexible'
  const [only] = zones.values
  return only ?? 'none'
}

/** Zones of any of the alternatives; undefined (= all) when one alternative does not list its zones. */
function union(alternatives: readonly (ValueSet | undefined)[]): ValueSet | undefined {
  const listed = alternatives.filter((set) => set !== undefined && !set.complement)
  if (listed.length < alternatives.length || listed.length === 0) return undefined
  return oneOf(labels.zone, ...listed.flatMap((set) => [...(set?.values ?? [])]))
}
