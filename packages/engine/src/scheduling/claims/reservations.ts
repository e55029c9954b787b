/** Which claims hold which reservations during a simulation (scheduling.md 11.1). */
import type { SchedulingPolicy } from '../../input/input.ts'
import type { CompiledOffering } from '../types/instance-rows.ts'
import type { Template } from './pool-template.ts'

/** The reservations of a claim after one more pod. */
export type ReservationAnswer =
  | { readonly kind: 'holds'; readonly ids: ReadonlySet<string> }
  | { readonly kind: 'refused'; readonly variant: 'noneLeft' | 'wouldLose' }

const nothing: ReadonlySet<string> = new Set()

export class Reservations {
  readonly #label: string
  readonly #isStrict: boolean
  readonly #left = new Map<string, number>()

  constructor(policy: NonNullable<SchedulingPolicy['reservations']>, templates: readonly Template[]) {
    this.#label = policy.label
    this.#isStrict = policy.mode === 'Strict'
    for (const { rows } of templates) {
      for (const { group } of rows) {
        for (const offering of group.offerings) {
          const id = this.#idOf(offering)
          if (id === undefined) continue
          this.#left.set(
            id,
            Math.min(this.#left.get(id) ?? Number.POSITIVE_INFINITY, offering.reservationCapacity),
          )
        }
      }
    }
  }

  /** @param offerings the offerings that the claim would still allow. */
  judge(held: ReadonlySet<string>, offerings: Iterable<CompiledOffering>): ReservationAnswer {
    const ids = new Set<string>()
    let isOffered = false
    for (const offering of offerings) {
      const id = this.#idOf(offering)
      if (id === undefined) continue
      isOffered = true
      if (held.has(id) || (this.#left.get(id) ?? 0) > 0) ids.add(id)
    }
    if (this.#isStrict && ids.size === 0) {
      if (isOffered) return { kind: 'refused', variant: 'noneLeft' }
      if (held.size > 0) return { kind: 'refused', variant: 'wouldLose' }
    }
    return { kind: 'holds', ids: ids.size === 0 ? nothing : ids }
  }

  /** Books the reservations that a claim holds now, and releases those that it no longer holds. */
  exchange(before: ReadonlySet<string>, now: ReadonlySet<string>): void {
    for (const id of now) if (!before.has(id)) this.#left.set(id, (this.#left.get(id) ?? 0) - 1)
    for (const id of before) if (!now.has(id)) this.#left.set(id, (this.#left.get(id) ?? 0) + 1)
  }

  get label(): string {
    return this.#label
  }

  #idOf(offering: CompiledOffering): string | undefined {
    if (offering.capacityType !== 'reserved') return undefined
    return offering.requirements.get(this.#label)?.values.values().next().value
  }
}
