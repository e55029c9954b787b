/** What a simulation changed while members of a group were tried, so that it can be taken back (gangs.md 7.2). */
import { type PricePerHour, type PriceSum, sumOfPrices } from '@tenon/api'
import type { ClaimClass } from '../claims/claim-class.ts'
import type { ClaimQueue, OpenClaim } from '../claims/open-claims.ts'
import type { Ground, GroundMark } from '../ground.ts'
import { Journal } from './journal.ts'

/** What open claims are kept in. */
interface ClaimPlaces {
  readonly ground: Pick<Ground, 'mark' | 'rollback'>
  /** What the claim costs as its cheapest type. */
  readonly priceOf: (claim: OpenClaim) => PricePerHour
  /** By class of their claims. */
  readonly queues: ReadonlyMap<ClaimClass, ClaimQueue>
  /** Whether any claim may refuse a pod for what others took. */
  readonly areShared: boolean
  /** Gives back the offerings that a claim reserved, for those that it reserved before. */
  readonly exchange: (now: OpenClaim['reservations'], before: OpenClaim['reservations']) => void
  /** Told after changes were taken back. */
  readonly undone: () => void
}

interface Marks {
  readonly journal: number
  readonly ground: GroundMark
}

export class TrialLog {
  readonly #places: ClaimPlaces
  readonly #journal = new Journal()
  /** What claims cost that changed during a trial, undefined for those opened in it. */
  readonly #touched = new Map<OpenClaim, { readonly before: PricePerHour } | undefined>()
  #marks: Marks | undefined

  constructor(places: ClaimPlaces) {
    this.#places = places
  }

  /** Whether changes are noted. */
  get isOpen(): boolean {
    return this.#journal.isOpen
  }

  /** Changes are noted from now on. */
  begin(): void {
    this.#journal.begin()
    this.#touched.clear()
    this.#marks = { journal: this.#journal.mark(), ground: this.#places.ground.mark() }
  }

  /** What was changed stays, and no further change is noted. */
  keep(): void {
    this.#journal.end()
    this.#marks = undefined
  }

  /** Takes back all changes since {@link begin}. */
  undo(): void {
    if (this.#marks === undefined) return
    const { queues, areShared, ground } = this.#places
    const changed = new Set([...this.#touched.keys()].map(({ class: of }) => of))
    this.#journal.rollback(this.#marks.journal)
    ground.rollback(this.#marks.ground)
    for (const claim of this.#touched.keys()) changed.add(claim.class)
    if (areShared) for (const queue of queues.values()) queue.forget()
    else for (const of of changed) queues.get(of)?.forget()
    this.#touched.clear()
    this.#places.undone()
  }

  /** Notes how to take a change back; called before the change is made, or right after it. */
  note(undo: () => void): void {
    this.#journal.note(undo)
  }

  /** Notes what a claim of this queue is before it takes one more pod. */
  noteFilling(claim: OpenClaim, queue: ClaimQueue): void {
    if (!this.isOpen) return
    if (!this.#touched.has(claim)) this.#touched.set(claim, { before: this.#places.priceOf(claim) })
    this.#noteState(claim, () => queue.restore(claim))
  }

  /**
   * Notes that a claim is opened.
   * @param back takes it from where open claims are kept, once it is out of its queue.
   */
  noteOpening(claim: OpenClaim, back: () => void): void {
    this.#touched.set(claim, undefined)
    this.#noteState(claim, back)
  }

  /** What the claims that changed since {@link begin} cost more than before. */
  rise(): PriceSum {
    const after = sumOfPrices([...this.#touched.keys()].map((claim) => this.#places.priceOf(claim)))
    const before = sumOfPrices([...this.#touched.values()].flatMap((known) => (known ? [known.before] : [])))
    return {
      pricePerHour: after.pricePerHour - before.pricePerHour,
      unpriced: after.unpriced - before.unpriced,
    }
  }

  #noteState(claim: OpenClaim, back: () => void): void {
    const { class: of, state, cheapest, rise, arrival, hostPorts, reservations, taker, slot } = claim
    const amounts = claim.amounts.slice()
    const before = claim.pods.length
    this.#journal.note(() => {
      this.#places.queues.get(claim.class)?.remove(claim)
      if (claim.reservations !== reservations) this.#places.exchange(claim.reservations, reservations)
      Object.assign(claim, {
        class: of,
        state,
        cheapest,
        rise,
        arrival,
        hostPorts,
        reservations,
        taker,
        slot,
      })
      claim.amounts.set(amounts)
      claim.pods.length = before
      back()
    })
  }
}
