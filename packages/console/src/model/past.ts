/** The journal as far back as there is one: what was spent, and what was decided (page.md 2). */
import { SpendLedger } from '@tenon/ask/cost'
import type { JournalEntry } from '@tenon/operator'
import type { SourceEvent } from './event.ts'
import { FoldedDecisions } from './folded-decisions.ts'

export class Past {
  readonly spend = new SpendLedger()
  readonly decisions = new FoldedDecisions()
  /** New entries, until the old ones are read; undefined if nothing is being read. */
  #waiting: JournalEntry[] | undefined

  /** Whether older entries may still come. */
  get isReading(): boolean {
    return this.#waiting !== undefined
  }

  add(entries: readonly JournalEntry[]): void {
    if (this.#waiting === undefined) this.#take(entries)
    else this.#waiting.push(...entries)
  }

  read({ entries, stage }: Extract<SourceEvent, { kind: 'past' }>): void {
    // After a cut, the newest entries are sent again, too.
    if (stage === 'begins') this.#waiting = []
    this.#take(entries)
    if (stage !== 'ends' || this.#waiting === undefined) return
    const newer = this.#waiting
    this.#waiting = undefined
    this.#take(newer)
  }

  #take(entries: readonly JournalEntry[]): void {
    for (const entry of entries) {
      this.spend.add(entry)
      this.decisions.add(entry)
    }
  }
}
