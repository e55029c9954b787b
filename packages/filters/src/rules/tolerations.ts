import type { Taint, Toleration } from '@tenon/api'

/** Whether one toleration covers a taint. */
function toleratesTaint(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect !== undefined && toleration.effect !== taint.effect) return false
  if (toleration.key === undefined || toleration.key === '') return toleration.operator === 'Exists'
  if (toleration.key !== taint.key) return false
  return toleration.operator === 'Exists' || (toleration.value ?? '') === (taint.value ?? '')
}

/** The first taint that no toleration covers. */
export function firstUntolerated(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
): Taint | undefined {
  if (taints.length === 0) return undefined
  return taints.find((taint) => !tolerations.some((one) => toleratesTaint(one, taint)))
}
