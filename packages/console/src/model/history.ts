/** The journal as it is followed: the newest entries, and what they add up to. */
import { type JournalEntry, savingsByDay } from '@tenon/operator/objects'
import { rfc3339 } from '@tenon/runtime'
import { ChangingTable } from './table.ts'

/** Older entries are left out; `tenon journal` has them all. */
const mostEntries = 5000
const minuteMs = 60_000

export class History {
  readonly table = new ChangingTable<JournalEntry>()
  #entries: JournalEntry[] = []
  #saved: { readonly minute: number; readonly count: number; readonly amount: number | undefined } | undefined
  #isTold = false

  /** Whether a journal was read at all. */
  get isTold(): boolean {
    return this.#isTold
  }

  tell(entries: readonly JournalEntry[]): void {
    this.#isTold = true
    for (const entry of entries) {
      if (this.table.get(entry.id) !== undefined) continue
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

  /** In the currency; undefined when no move of today tells. */
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
