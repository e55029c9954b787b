import { type Taint, tolerates, type Toleration } from '@tenon/api'

/** Taints the pod does not tolerate. PreferNoSchedule counts as well (scheduling.md 7.1). */
export function untolerated(taints: readonly Taint[], tolerations: readonly Toleration[]): readonly Taint[] {
  return taints.filter((taint) => !tolerations.some((toleration) => tolerates(toleration, taint)))
}

/** Taints without PreferNoSchedule, which daemon pods tolerate. */
export function hardTaints(taints: readonly Taint[]): readonly Taint[] {
  return taints.filter((taint) => taint.effect !== 'PreferNoSchedule')
}
