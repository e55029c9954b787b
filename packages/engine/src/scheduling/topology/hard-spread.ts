import type { Pod, TopologySpreadConstraint } from '@tenon/api'

/** The DoNotSchedule constraints of a pod. */
export function hardSpreadOf({ spec }: Pod): readonly TopologySpreadConstraint[] {
  return (spec.topologySpreadConstraints ?? []).filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule',
  )
}
