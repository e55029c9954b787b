/** Follows the journal: its newest entries, and savings. */
import { type JournalEntry, savingsByDay } from '@tenon/operator/objects'
import { rfc3339 } from '@tenon/runtime'
import { ChangingTable } from './table.ts'

/** Older entries are dropped; `tenon journal` has them all. */
const mostEntries = 5000
const minuteMs = 60_000

export class History {
  readonly table = new ChangingTable<JournalEntry>()
  #entries: JournalEntry[] = []
  #saved: { readonly minute: number; readonly count: number; readonly amount: number | undefined } | undefined
  #isKnown = false

  /** Whether a journal could be read. */
  get isKnown(): boolean {
    return this.#isKnown
  }

  add(entries: readonly JournalEntry[]): void {
    this.#isKnown = true
    for (const entry of entries) {
      // What others did stands in the objects themselves, and what was spent is no decision.
      if (entry.kind === 'seen' || entry.kind === 'spend' || this.table.get(entry.id) !== undefined) continue
      this.table.set(entry)
      this.#entries.push(entry)
    }
    const extra = this.#entries.length - mostEntries
    if (extra <= 0) return
    for (const { id } of this.#entries.slice(0, extra)) this.table.delete(id)
    this.#entries = this.#entries.slice(extra)
  }

  decisionsPerMinute(nowMs: number): number {
    const since = rfc3339(nowMs - minuteMs)
    let count = 0
    for (let at = this.#entries.length - 1; at >= 0; at--) {
      const entry = this.#entries[at]
      if (entry === undefined || entry.at < since) break
      if (entry.kind === 'decision') count++
    }
    return count
  }

  /** In the currency; undefined if no move of today has known savings. */
  savedToday(nowMs: number): number | undefined {
    const [minute, count] = [Math.floor(nowMs / minuteMs), this.#entries.length]
    if (this.#saved?.minute !== minute || this.#saved.count !== count) {
      const today = savingsByDay(this.#entries, nowMs).findLast(
        ({ day }) => day === rfc3339(nowMs).slice(0, 10),
      )
      this.#saved = { minute, count, amount: today?.saved }
    }
    return this.#saved.amount
  }
}
