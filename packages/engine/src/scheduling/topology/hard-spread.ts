import type { Pod, TopologySpreadConstraint } from '@tenon/api'

/** The spreading that a pod insists on. */
export function hardSpreadOf({ spec }: Pod): readonly TopologySpreadConstraint[] {
  return (spec.topologySpreadConstraints ?? []).filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule',
  )
}
