/** In which zone a pending pod can end up, told before anything is placed (scheduling.md 12.4). */
import { labels, type Pod } from '@tenon/api'
import { intersection, oneOf, type ValueSet, valueSet } from '../requirements/requirement.ts'
import { requiredAlternatives, requirementsOf } from '../requirements/requirements.ts'
import type { PodVolumes } from '../input/input.ts'

/**
 * Name of the only zone a well-formed pod can use; `flexible` when there are several or any, `none`
 * when there is none.
 * @param topologyZones zones that are valid under the pod's zonal topologies; undefined for all.
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

/** Zones of any of the alternatives; undefined when they cannot be listed, which allows all. */
function union(alternatives: readonly (ValueSet | undefined)[]): ValueSet | undefined {
  const listed = alternatives.filter((set) => set !== undefined && !set.complement)
  if (listed.length < alternatives.length || listed.length === 0) return undefined
  return oneOf(labels.zone, ...listed.flatMap((set) => [...(set?.values ?? [])]))
}
