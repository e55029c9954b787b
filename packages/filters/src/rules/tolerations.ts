import { type Taint, tolerates, type Toleration } from '@tenon/api'

/** The first taint that no toleration covers. */
export function firstUntolerated(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
): Taint | undefined {
  if (taints.length === 0) return undefined
  return taints.find((taint) => !tolerations.some((one) => tolerates(one, taint)))
}
