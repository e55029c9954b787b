/** Faults of the simulated infrastructure. */
import { ownValue } from '@tenon/api'
import { type Random, unit } from '@tenon/runtime'
import type { FullMachine } from './kinds.ts'

/** What befalls one Machine; decided when its controller first sees it. */
export type MachineEffect =
  /** It never gets a provider ID. */
  | { readonly kind: 'neverProvided' }
  /** Provider ID and Node come later than usual: the first counts from the creation, the second from the first. */
  | { readonly kind: 'slow'; readonly providerIdMs?: number; readonly nodeMs?: number }
  /** The infrastructure gives up so long after the creation: before the provider ID, or later. */
  | { readonly kind: 'fails'; readonly afterMs: number; readonly reason: string; readonly message: string }
  /** The infrastructure has no room for it for so long; forever when absent. */
  | { readonly kind: 'noRoom'; readonly forMs?: number }
  /** Its machine runs, but no Node comes of it. */
  | { readonly kind: 'neverJoins' }
  /** Its Node never gets ready. */
  | { readonly kind: 'neverReady' }
  /** It gets the provider ID of another Machine, if there is one. */
  | { readonly kind: 'duplicateProviderId' }
  /** Its end takes so much longer. */
  | { readonly kind: 'slowDeletion'; readonly moreMs: number }

/** A fault of Machines: the next `times` of them, or each with probability `rate`; else all. */
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

/** The faults in force. */
export class Faults {
  readonly #random: Random
  readonly #deploymentLabel: string
  #entries: readonly Entry[] = []

  /** @param deploymentLabel label of a Machine with the name of its MachineDeployment. */
  constructor(random: Random, deploymentLabel: string) {
    this.#random = random
    this.#deploymentLabel = deploymentLabel
  }

  /** Puts a fault in force; the returned function lifts it. */
  add(fault: MachineFault): () => void {
    const entry = { fault, left: fault.times ?? Number.POSITIVE_INFINITY }
    this.#entries = [...this.#entries, entry]
    return () => {
      this.#entries = this.#entries.filter((other) => other !== entry)
    }
  }

  /** Lifts every fault; Machines that were struck stay so. */
  clear(): void {
    this.#entries = []
  }

  /** What befalls a Machine that is seen for the first time. */
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

/** The effect of a kind, if it is among them. */
export function effectOf<K extends MachineEffect['kind']>(
  effects: readonly MachineEffect[],
  kind: K,
): Extract<MachineEffect, { readonly kind: K }> | undefined {
  return effects.find(
    (effect): effect is Extract<MachineEffect, { readonly kind: K }> => effect.kind === kind,
  )
}
