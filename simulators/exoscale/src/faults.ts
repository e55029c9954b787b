import { type Random, unit } from '@tenon/runtime'
import type { OperationReason } from './instances/operation-outcome.ts'

/** A fault of a call or of the instance that it creates. */
export type FaultEffect =
  /** An error before anything happened. */
  | {
      readonly kind: 'refuse'
      readonly status: number
      readonly body?: unknown
      readonly headers?: Readonly<Record<string, string>>
    }
  /** The connection breaks before anything happened. */
  | { readonly kind: 'lostRequest' }
  /** The call takes effect, but its response is lost. */
  | { readonly kind: 'lostReply' }
  /** The operation fails. */
  | { readonly kind: 'failOperation'; readonly reason: OperationReason; readonly message: string }
  /** The operation stays pending forever. */
  | { readonly kind: 'hangOperation' }
  /** The instance runs but its system never boots. */
  | { readonly kind: 'neverBoots' }
  /** The instance boots but never joins the cluster. */
  | { readonly kind: 'neverJoins' }
  /** The instance joins, but its node never becomes ready. */
  | { readonly kind: 'neverReady' }

/** When a fault occurs: the next `times` calls, or each call with probability `rate`; default: always. */
export interface FaultRule {
  /** Operation id such as `create-instance`, or `*` for every operation. */
  readonly operation: string
  readonly times?: number
  /** Probability in [0, 1]. */
  readonly rate?: number
  readonly effect: FaultEffect
}

/** The active faults. */
export class Faults {
  readonly #random: Random
  #rules: { readonly rule: FaultRule; left: number }[] = []

  constructor(random: Random) {
    this.#random = random
  }

  /** Activates a rule; the returned function deactivates it. */
  add(rule: FaultRule): () => void {
    const entry = { rule, left: rule.times ?? Number.POSITIVE_INFINITY }
    this.#rules.push(entry)
    return () => {
      this.#rules = this.#rules.filter((other) => other !== entry)
    }
  }

  /** Deactivates every rule. */
  clear(): void {
    this.#rules = []
  }

  /** The faults of one call; decrements their `times`. */
  draw(operation: string): FaultEffect[] {
    const effects: FaultEffect[] = []
    for (const entry of this.#rules) {
      const { rule } = entry
      if (rule.operation !== '*' && rule.operation !== operation) continue
      if (rule.rate !== undefined && unit(this.#random) >= rule.rate) continue
      entry.left--
      effects.push(rule.effect)
    }
    this.#rules = this.#rules.filter((entry) => entry.left > 0)
    return effects
  }
}
