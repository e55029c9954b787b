/** Whether fewer replicas take just the Machine that is meant (cluster-api.md 10, 18, trap 11). */
import type { MachineDeployment, MachineSet } from '../objects.ts'

/**
 * Whether Cluster API answers a lower `spec.replicas` by shrinking the MachineSet `setName`. While a MachineDeployment
 * has Machines in several, a rollout decides that; with the strategy OnDelete the oldest former one shrinks first.
 * @param sets all MachineSets of the MachineDeployment.
 */
export function shrinksFirst(
  deployment: MachineDeployment,
  sets: readonly MachineSet[],
  setName: string | undefined,
): boolean {
  const filled = sets.filter(
    ({ spec, status, metadata }) =>
      metadata.deletionTimestamp === undefined && ((spec?.replicas ?? 0) > 0 || (status?.replicas ?? 0) > 0),
  )
  const [oldest] = filled.toSorted(byAge)
  if (oldest === undefined || filled.length === 1) return true
  return isOnDelete(deployment) && oldest.metadata.name === setName
}

/** Whether Machines are replaced only as they are deleted. */
export function isOnDelete({ spec }: MachineDeployment): boolean {
  return (spec?.rollout?.strategy?.type ?? spec?.strategy?.type) === 'OnDelete'
}

function byAge({ metadata: a }: MachineSet, { metadata: b }: MachineSet): number {
  const [one = '', other = ''] = [a.creationTimestamp, b.creationTimestamp]
  if (one !== other) return one < other ? -1 : 1
  return a.name < b.name ? -1 : 1
}
