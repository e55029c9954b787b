/** The changes of a simulation while it tries the members of a group, so that they can be undone (gangs.md 7.2). */
import { type PricePerHour, type PriceSum, sumOfPrices } from '@tenon/api'
import type { ClaimClass } from '../claims/claim-class.ts'
import type { ClaimFinisher } from '../claims/finished-claims.ts'
import type { ClaimQueue, OpenClaim } from '../claims/open-claims.ts'
import type { Reservations } from '../claims/reservations.ts'
import type { SchedulerState, StateMark } from '../scheduler-state.ts'

/** Where a simulation keeps what a trial may change. */
interface TrialState {
  readonly state: SchedulerState
  readonly finisher: ClaimFinisher
  /** By class of their claims. */
  readonly queues: ReadonlyMap<ClaimClass, ClaimQueue>
  readonly reservations: Reservations | undefined
  /** Whether any claim may refuse a pod because of what other claims took (devices). */
  readonly areShared: boolean
}

interface Marks {
  readonly journal: number
  readonly state: StateMark
}

export class TrialLog {
  readonly #kept: TrialState
  readonly #journal = new Journal()
  /** Claims that changed during the trial, with their price before; undefined for those opened in it. */
  readonly #touched = new Map<OpenClaim, { readonly before: PricePerHour } | undefined>()
  #marks: Marks | undefined

  constructor(kept: TrialState) {
    this.#kept = kept
  }

  /** Whether changes are noted. */
  get isOpen(): boolean {
    return this.#journal.isOpen
  }

  /** Notes all changes from now on. */
  begin(): void {
    this.#journal.begin()
    this.#touched.clear()
    this.#marks = { journal: this.#journal.mark(), state: this.#kept.state.mark() }
  }

  /** Keeps the changes and stops noting. */
  keep(): void {
    this.#journal.end()
    this.#marks = undefined
  }

  /** Undoes all changes since {@link begin}. */
  undo(): void {
    if (this.#marks === undefined) return
    const { queues, areShared, state } = this.#kept
    const changed = new Set([...this.#touched.keys()].map(({ class: of }) => of))
    this.#journal.rollback(this.#marks.journal)
    state.rollback(this.#marks.state)
    for (const claim of this.#touched.keys()) changed.add(claim.class)
    if (areShared) for (const queue of queues.values()) queue.forget()
    else for (const of of changed) queues.get(of)?.forget()
    this.#touched.clear()
  }

  /** Notes how to undo a change; called right before the change, or right after it. */
  note(undo: () => void): void {
    this.#journal.note(undo)
  }

  /** Notes the state of a claim of this queue before one more pod is added. */
  noteFilling(claim: OpenClaim, queue: ClaimQueue): void {
    if (!this.isOpen) return
    if (!this.#touched.has(claim)) this.#touched.set(claim, { before: this.#kept.finisher.priceOf(claim) })
    this.#noteState(claim, () => queue.restore(claim))
  }

  /**
   * Notes that a claim is opened.
   * @param back removes it from the open claims, once it is out of its queue.
   */
  noteOpening(claim: OpenClaim, back: () => void): void {
    this.#touched.set(claim, undefined)
    this.#noteState(claim, back)
  }

  /** How much more the claims that changed since {@link begin} cost than before. */
  rise(): PriceSum {
    const after = sumOfPrices([...this.#touched.keys()].map((claim) => this.#kept.finisher.priceOf(claim)))
    const before = sumOfPrices([...this.#touched.values()].flatMap((known) => (known ? [known.before] : [])))
    return {
      pricePerHour: after.pricePerHour - before.pricePerHour,
      unpriced: after.unpriced - before.unpriced,
    }
  }

  #noteState(claim: OpenClaim, back: () => void): void {
    const { class: of, state, cheapest, rise, arrival, hostPorts, reservations, consumer, slot } = claim
    const amounts = claim.amounts.slice()
    const before = claim.pods.length
    this.#journal.note(() => {
      this.#kept.queues.get(claim.class)?.remove(claim)
      if (claim.reservations !== reservations)
        this.#kept.reservations?.exchange(claim.reservations, reservations)
      Object.assign(claim, {
        class: of,
        state,
        cheapest,
        rise,
        arrival,
        hostPorts,
        reservations,
        consumer,
        slot,
      })
      claim.amounts.set(amounts)
      claim.pods.length = before
      back()
    })
  }
}

/** Undo functions of the changes during a trial (gangs.md 7.2). */
class Journal {
  #undos: (() => void)[] | undefined

  /** Notes changes from now on. */
  begin(): void {
    this.#undos ??= []
  }

  /** Keeps the changes and stops noting. */
  end(): void {
    this.#undos = undefined
  }

  /** Notes how to undo a change; called right before the change, or right after it. */
  note(undo: () => void): void {
    this.#undos?.push(undo)
  }

  get isOpen(): boolean {
    return this.#undos !== undefined
  }

  mark(): number {
    return this.#undos?.length ?? 0
  }

  /** Undoes the changes since the mark, the last one first. */
  rollback(mark: number): void {
    const undos = this.#undos ?? []
    while (undos.length > mark) (undos.pop() as () => void)()
  }
}
