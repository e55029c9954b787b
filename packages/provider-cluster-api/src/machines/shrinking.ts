/** Whether lowering the replicas removes exactly the intended Machine (cluster-api.md 10, 18, trap 11). */
import { compareAges } from '../hub/keys.ts'
import type { MachineDeployment, MachineSet } from '../objects.ts'

/**
 * Whether Cluster API shrinks the MachineSet `setName` when `spec.replicas` is lowered. While a MachineDeployment has
 * Machines in several MachineSets, the rollout decides; with OnDelete the oldest former one shrinks first.
 * @param sets all MachineSets of the MachineDeployment.
 */
export function shrinksFirst(
  deployment: MachineDeployment,
  sets: readonly MachineSet[],
  setName: string | undefined,
): boolean {
  const filled = filledOf(sets)
  const [oldest] = filled.toSorted(compareAges)
  if (oldest === undefined || filled.length === 1) return true
  return isOnDelete(deployment) && oldest.metadata.name === setName
}

function filledOf(sets: readonly MachineSet[]): readonly MachineSet[] {
  return sets.filter(
    ({ spec, status, metadata }) =>
      metadata.deletionTimestamp === undefined && ((spec?.replicas ?? 0) > 0 || (status?.replicas ?? 0) > 0),
  )
}

/**
 * Whether Cluster API has done what `spec.replicas` requires: Machines that are not being deleted are counted in it.
 * During a rollout this is not known.
 */
export function isSettled(deployment: MachineDeployment, sets: readonly MachineSet[]): boolean {
  return hasObserved(deployment) && sets.every(hasObserved) && filledOf(sets).length <= 1
}

/** Whether Cluster API has acted on the latest spec of a MachineDeployment or MachineSet. */
export function hasObserved({ metadata, status }: MachineDeployment | MachineSet): boolean {
  const { generation } = metadata
  return generation === undefined || (status?.observedGeneration ?? 0) >= generation
}

/** Whether Machines are only replaced after users delete them (OnDelete). */
export function isOnDelete({ spec }: MachineDeployment): boolean {
  return (spec?.rollout?.strategy?.type ?? spec?.strategy?.type) === 'OnDelete'
}
