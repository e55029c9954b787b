/** Cells on their way from where they were to where they are. */
import type { Cell } from './layout.ts'

const durationMs = 350

/** Moves cells between layouts; without motion they are where they are at once. */
export class Motion {
  #from: ReadonlyMap<string, Cell> = new Map()
  #to: readonly Cell[] = []
  #startMs = Number.NEGATIVE_INFINITY

  /** @param isStill no motion is wanted. */
  moveTo(cells: readonly Cell[], nowMs: number, isStill: boolean): void {
    const shown = this.at(nowMs)
    this.#from = new Map(shown.map((cell) => [cell.row.id, cell]))
    const isSame = cells.every((cell) => {
      const was = this.#from.get(cell.row.id)
      return was !== undefined && was.x === cell.x && was.y === cell.y && was.size === cell.size
    })
    this.#to = cells
    this.#startMs = isStill || isSame || shown.length === 0 ? Number.NEGATIVE_INFINITY : nowMs
  }

  isMoving(nowMs: number): boolean {
    return nowMs - this.#startMs < durationMs
  }

  /** What is new grows; what has gone is gone. */
  at(nowMs: number): readonly Cell[] {
    const part = (nowMs - this.#startMs) / durationMs
    if (part >= 1) return this.#to
    const eased = 1 - (1 - part) ** 3
    return this.#to.map((cell) => {
      const was = this.#from.get(cell.row.id)
      if (was === undefined) {
        const size = cell.size * eased
        return { ...cell, size, x: cell.x + (cell.size - size) / 2, y: cell.y + (cell.size - size) / 2 }
      }
      return {
        ...cell,
        x: was.x + (cell.x - was.x) * eased,
        y: was.y + (cell.y - was.y) * eased,
        size: was.size + (cell.size - was.size) * eased,
      }
    })
  }
}
