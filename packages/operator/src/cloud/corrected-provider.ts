import type { NodePool } from '@tenon/api'
import { type CloudProvider, decorated } from '@tenon/provider'
import { type LearnedCapacity, nodeClassSettingsAnnotation } from '../state/nodes/learned-capacity.ts'

/** What instances really have, and the provider that says what they should. */
export interface CapacityLearning {
  readonly capacity: LearnedCapacity
  readonly provider: CloudProvider
}

/** The provider with types that are no larger than their instances turned out to be. */
export function correctedProvider({ capacity, provider }: CapacityLearning): CloudProvider {
  const getInstanceTypes: CloudProvider['getInstanceTypes'] = async (pool, signal) =>
    capacity.corrected(pool, await provider.getInstanceTypes(pool, signal))
  return decorated(provider, { getInstanceTypes })
}

/** Annotations of a new claim of a NodePool, with how its node class is now. */
export function settingsNote(
  learning: CapacityLearning | undefined,
  { spec }: NodePool,
): Readonly<Record<string, string>> {
  const settings = learning?.capacity.settingsOf(spec.template.spec.nodeClassRef)
  return settings === undefined ? {} : { [nodeClassSettingsAnnotation]: settings }
}
