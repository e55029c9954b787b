import { type Random, unit } from '@tenon/runtime'
import type { OperationReason } from './instances/operation-outcome.ts'

/** What goes wrong with a call or with the instance it creates. */
export type FaultEffect =
  /** Answered before anything happened. */
  | {
      readonly kind: 'refuse'
      readonly status: number
      readonly body?: unknown
      readonly headers?: Readonly<Record<string, string>>
    }
  /** The connection breaks before anything happened. */
  | { readonly kind: 'lostRequest' }
  /** The call takes effect, but its reply never arrives. */
  | { readonly kind: 'lostReply' }
  /** The operation ends in failure. */
  | { readonly kind: 'failOperation'; readonly reason: OperationReason; readonly message: string }
  /** The operation stays pending forever. */
  | { readonly kind: 'hangOperation' }
  /** The instance runs but its system never comes up. */
  | { readonly kind: 'neverBoots' }
  /** The instance boots but never joins the cluster. */
  | { readonly kind: 'neverJoins' }
  /** The instance joins, but its node never gets ready. */
  | { readonly kind: 'neverReady' }

/** When a fault strikes: the next `times` calls, or each call with probability `rate`; else always. */
export interface FaultRule {
  /** Operation id such as `create-instance`, or `*` for every operation. */
  readonly operation: string
  readonly times?: number
  /** Probability in [0, 1]. */
  readonly rate?: number
  readonly effect: FaultEffect
}

/** The faults in force. */
export class Faults {
  readonly #random: Random
  #rules: { readonly rule: FaultRule; left: number }[] = []

  constructor(random: Random) {
    this.#random = random
  }

  /** Puts a rule in force; the returned function lifts it. */
  add(rule: FaultRule): () => void {
    const entry = { rule, left: rule.times ?? Number.POSITIVE_INFINITY }
    this.#rules.push(entry)
    return () => {
      this.#rules = this.#rules.filter((other) => other !== entry)
    }
  }

  /** Lifts every rule. */
  clear(): void {
    this.#rules = []
  }

  /** The effects that strike one call; uses up their `times`. */
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
