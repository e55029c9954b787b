/** Which costs of deleting pods Tenon has written, and which somebody else (wanted.md 7). */
import type { Pod } from '@tenon/api'
import { deletionCostAnnotation } from '../../state/pods/pods.ts'

/** Written together with the cost: `-300 2026-11-30T12:00:00Z`. */
export const writtenAnnotation = 'tenon.sh/pod-deletion-cost'

const written = /^(?<cost>-[1-9]\d{0,5}) (?<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)$/

/** The pod's cost and when it was written, Unix milliseconds; undefined unless Tenon wrote it. */
export function ownCost({ metadata }: Pod): { readonly cost: number; readonly atMs: number } | undefined {
  const { cost, time } = written.exec(metadata.annotations?.[writtenAnnotation] ?? '')?.groups ?? {}
  const atMs = Date.parse(time ?? '')
  if (cost === undefined || Number.isNaN(atMs)) return undefined
  return metadata.annotations?.[deletionCostAnnotation] === cost ? { cost: Number(cost), atMs } : undefined
}

/** Whether somebody else has set a cost, even one that cannot be read. */
export function hasForeignCost(pod: Pod): boolean {
  return pod.metadata.annotations?.[deletionCostAnnotation] !== undefined && ownCost(pod) === undefined
}
