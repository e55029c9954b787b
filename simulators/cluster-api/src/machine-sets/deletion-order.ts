/** Which Machines a MachineSet deletes first (cluster-api.md 18). */
import { conditionOf, ownValue } from '@tenon/api'
import { type DeletionPolicy, type FullMachine, isLeaving } from '../kinds.ts'

/** Cluster API updates the Machine in place. */
const updating = 'in-place-updates.internal.cluster.x-k8s.io/update-in-progress'

const isUnhealthy = (machine: FullMachine): boolean => {
  const { failureReason, failureMessage, nodeRef } = machine.status ?? {}
  if (nodeRef?.name === undefined || failureReason !== undefined || failureMessage !== undefined) return true
  return (
    conditionOf(machine, 'NodeHealthy')?.status === 'False' ||
    conditionOf(machine, 'HealthCheckSucceeded')?.status === 'False'
  )
}

const bornMs = ({ metadata }: FullMachine): number => Date.parse(metadata.creationTimestamp ?? '')

const byPolicy: Readonly<Record<DeletionPolicy, (a: FullMachine, b: FullMachine) => number>> = {
  // All have the same rank, and ties are decided by name.
  Random: () => 0,
  Newest: (a, b) => bornMs(b) - bornMs(a),
  Oldest: (a, b) => bornMs(a) - bornMs(b),
}

/**
 * Machines in the order in which their MachineSet deletes them: those being deleted, those with the annotation,
 * those being updated in place, unhealthy ones, others by policy; ties by name.
 * @param deleteMachine the annotation; any value counts.
 */
export function deletionOrder(
  machines: readonly FullMachine[],
  policy: DeletionPolicy,
  deleteMachine: string,
): readonly FullMachine[] {
  const rankOf = (machine: FullMachine): number => {
    if (isLeaving(machine)) return 0
    if (ownValue(machine.metadata.annotations, deleteMachine) !== undefined) return 1
    if (ownValue(machine.metadata.annotations, updating) !== undefined) return 2
    return isUnhealthy(machine) ? 3 : 4
  }
  return machines.toSorted((a, b) => {
    const rank = rankOf(a)
    const difference = rank - rankOf(b)
    if (difference !== 0) return difference
    const byAge = rank === 4 ? byPolicy[policy](a, b) : 0
    return byAge === 0 ? (a.metadata.name < b.metadata.name ? -1 : 1) : byAge
  })
}
