/** Whether fewer replicas take just the Machine that is meant (cluster-api.md 10, 18, trap 11). */
import { compareAges } from '../hub/keys.ts'
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
  const [oldest] = filled.toSorted(compareAges)
  if (oldest === undefined || filled.length === 1) return true
  return isOnDelete(deployment) && oldest.metadata.name === setName
}

/** Whether Machines are replaced only as they are deleted. */
export function isOnDelete({ spec }: MachineDeployment): boolean {
  return (spec?.rollout?.strategy?.type ?? spec?.strategy?.type) === 'OnDelete'
}
