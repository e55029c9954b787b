/** Faults of the simulated infrastructure. */
import { ownValue } from '@tenon/api'
import { type Random, unit } from '@tenon/runtime'
import type { FullMachine } from './kinds.ts'

/** What happens to one Machine; decided when its controller first sees it. */
export type MachineEffect =
  /** It never gets a provider ID. */
  | { readonly kind: 'neverProvided' }
  /** Provider ID and Node come later than usual: the first since the creation, the second since the first. */
  | { readonly kind: 'slow'; readonly providerIdMs?: number; readonly nodeMs?: number }
  /** The infrastructure fails this long after the creation, before or after the provider ID. */
  | { readonly kind: 'fails'; readonly afterMs: number; readonly reason: string; readonly message: string }
  /** The infrastructure has no capacity for it for this time; default: forever. */
  | { readonly kind: 'noRoom'; readonly forMs?: number }
  /** Its machine runs but never joins the cluster. */
  | { readonly kind: 'neverJoins' }
  /** Its Node never becomes ready. */
  | { readonly kind: 'neverReady' }
  /** It gets the provider ID of another Machine, if there is one. */
  | { readonly kind: 'duplicateProviderId' }
  /** Its deletion takes longer by this time. */
  | { readonly kind: 'slowDeletion'; readonly moreMs: number }

/** A fault of Machines: of the next `times`, or of each with probability `rate`; default: of all. */
export interface MachineFault {
  readonly times?: number
  /** Probability in [0, 1]. */
  readonly rate?: number
  /** Only Machines of this MachineDeployment. */
  readonly deployment?: string
  readonly effect: MachineEffect
}

interface Entry {
  readonly fault: MachineFault
  left: number
}

/** The active faults. */
export class Faults {
  readonly #random: Random
  readonly #deploymentLabel: string
  #entries: readonly Entry[] = []

  /** @param deploymentLabel label of a Machine with the name of its MachineDeployment. */
  constructor(random: Random, deploymentLabel: string) {
    this.#random = random
    this.#deploymentLabel = deploymentLabel
  }

  /** Activates a fault; the returned function deactivates it. */
  add(fault: MachineFault): () => void {
    const entry = { fault, left: fault.times ?? Number.POSITIVE_INFINITY }
    this.#entries = [...this.#entries, entry]
    return () => {
      this.#entries = this.#entries.filter((other) => other !== entry)
    }
  }

  /** Deactivates every fault; Machines with a fault keep it. */
  clear(): void {
    this.#entries = []
  }

  /** The faults of a Machine that is seen for the first time. */
  strike({ metadata }: FullMachine): readonly MachineEffect[] {
    const deployment = ownValue(metadata.labels, this.#deploymentLabel)
    const struck = this.#entries.filter(
      ({ fault }) =>
        (fault.deployment ?? deployment) === deployment &&
        (fault.rate === undefined || unit(this.#random) < fault.rate),
    )
    for (const entry of struck) entry.left--
    this.#entries = this.#entries.filter(({ left }) => left > 0)
    return struck.map(({ fault }) => fault.effect)
  }
}

/** The fault of this kind, if there is one. */
export function effectOf<K extends MachineEffect['kind']>(
  effects: readonly MachineEffect[],
  kind: K,
): Extract<MachineEffect, { readonly kind: K }> | undefined {
  return effects.find(
    (effect): effect is Extract<MachineEffect, { readonly kind: K }> => effect.kind === kind,
  )
}
