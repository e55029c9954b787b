import type { ExoscaleInstance } from '../api/types.ts'
import { instanceLabels, managedByValue } from '../identifiers.ts'

const deletingStates = new Set(['destroying', 'destroyed', 'expunging'])

/** An instance of this cluster, with what its labels say about ownership. */
export interface OwnedInstance {
  readonly id: string
  readonly nodeClaimName: string | undefined
  readonly createdAtMs: number | undefined
  readonly isDeleting: boolean
  readonly instance: ExoscaleInstance
}

/** Undefined if the instance belongs to another cluster or person. */
export function ownedInstance(instance: ExoscaleInstance, clusterId: string): OwnedInstance | undefined {
  const labels = instance.labels ?? {}
  if (labels[instanceLabels.managedBy] !== managedByValue) return undefined
  if (labels[instanceLabels.clusterId] !== clusterId) return undefined
  const createdAtMs = Date.parse(instance['created-at'] ?? '')
  return {
    id: instance.id,
    nodeClaimName: labels[instanceLabels.nodeClaim],
    createdAtMs: Number.isNaN(createdAtMs) ? undefined : createdAtMs,
    isDeleting: isDeletingState(instance.state),
    instance,
  }
}

function isDeletingState(state: string | undefined): boolean {
  return state !== undefined && deletingStates.has(state)
}

/** Oldest first, ties by id, so that all callers keep the same one of two instances. */
export function byAge(a: OwnedInstance, b: OwnedInstance): number {
  const difference = (a.createdAtMs ?? 0) - (b.createdAtMs ?? 0)
  return difference === 0 ? (a.id < b.id ? -1 : 1) : difference
}
