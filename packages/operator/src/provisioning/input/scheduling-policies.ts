/** The rules of a decision, as settings and provider have them. */
import { wellKnownLabels } from '@tenon/api'
import type { SchedulingPolicy } from '@tenon/engine'
import type { CloudProvider } from '@tenon/provider'
import type { PlacementGate } from '../../placement/gate.ts'
import type { Settings } from '../../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly settings: Pick<Settings, 'preferences' | 'minValues' | 'featureGates'>
  readonly provider: Pick<CloudProvider, 'reservationLabel' | 'wellKnownLabels'>
  readonly placementGate: Pick<PlacementGate, 'improvementFor'>
}

const maxInstanceTypes = 600

export class SchedulingPolicies {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param waiting number of pods that are decided about. */
  of(waiting: number): SchedulingPolicy {
    const { placementGate, provider, settings } = this.#deps
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
}
