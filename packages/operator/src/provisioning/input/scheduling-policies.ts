/** The rules of a decision, as settings and provider have them. */
import { wellKnownLabels } from '@tenon/api'
import type { SchedulingPolicy } from '@tenon/engine'
import type { CloudProvider } from '@tenon/provider'
import type { PlacementGate } from '../../placement/gate.ts'
import type { Settings } from '../../settings.ts'

export interface SchedulingPolicyParts {
  readonly settings: Pick<Settings, 'preferences' | 'minValues' | 'featureGates'>
  readonly provider: Pick<CloudProvider, 'reservationLabel' | 'wellKnownLabels'>
  readonly placementGate: Pick<PlacementGate, 'improvementFor'>
}

const maxInstanceTypes = 600

/** @param waiting number of pods that are decided about. */
export function schedulingPolicy(
  { placementGate, provider, settings }: SchedulingPolicyParts,
  waiting: number,
): SchedulingPolicy {
  const { reservationLabel: label } = provider
  return {
    preferences: settings.preferences,
    minValues: settings.minValues,
    wellKnownLabels: new Set([...wellKnownLabels, ...provider.wellKnownLabels]),
    maxInstanceTypes,
    ...placementGate.improvementFor(waiting),
    ...(label !== undefined &&
      settings.featureGates.reservedCapacity && { reservations: { label, mode: 'Strict' } }),
  }
}
