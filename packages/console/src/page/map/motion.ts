/** Animates squares from their old to their new position. */
import type { Box } from './layout.ts'

const durationMs = 350

/** With reduced motion, squares jump to their new position. */
export class Motion<B extends Box> {
  readonly #grows: boolean
  /** Start positions of the moving squares of {@link #to}, by id; undefined for a new one. */
  #from: ReadonlyMap<string, B | undefined> = new Map()
  #to: readonly B[] = []
  #gone: readonly B[] = []
  #startMs = Number.NEGATIVE_INFINITY

  /** @param grows new squares grow and removed ones shrink; otherwise they appear and disappear at once. */
  constructor({ grows }: { readonly grows: boolean }) {
    this.#grows = grows
  }

  /** @param isStill the user prefers reduced motion. */
  moveTo(boxes: readonly B[], nowMs: number, isStill: boolean): void {
    const shown = this.at(nowMs)
    const was = new Map(shown.map((box) => [box.id, box]))
    const from = new Map<string, B | undefined>()
    for (const box of boxes) {
      const before = was.get(box.id)
      was.delete(box.id)
      if (before === undefined ? this.#grows : !isSame(before, box)) from.set(box.id, before)
    }
    this.#from = from
    this.#to = boxes
    this.#gone = this.#grows ? [...was.values()] : []
    const isThere = this.#gone.length === 0 && from.size === 0
    this.#startMs = isStill || isThere || shown.length === 0 ? Number.NEGATIVE_INFINITY : nowMs
  }

  isMoving(nowMs: number): boolean {
    return nowMs - this.#startMs < durationMs
  }

  /** Unmoved squares, usually most of thousands, are the same objects in each frame. */
  at(nowMs: number): readonly B[] {
    const part = (nowMs - this.#startMs) / durationMs
    if (part >= 1) return this.#to
    const eased = 1 - (1 - part) ** 3
    return [
      ...this.#gone.map((box) => scaled(box, 1 - eased)),
      ...this.#to.map((box) => {
        if (!this.#from.has(box.id)) return box
        const was = this.#from.get(box.id)
        return was === undefined ? scaled(box, eased) : between(was, box, eased)
      }),
    ]
  }
}

function isSame(was: Box, box: Box): boolean {
  return was === box || (was.x === box.x && was.y === box.y && was.size === box.size && was.fill === box.fill)
}

/** Scales a box around its centre. */
function scaled<B extends Box>(box: B, part: number): B {
  const size = box.size * part
  return { ...box, size, x: box.x + (box.size - size) / 2, y: box.y + (box.size - size) / 2 }
}

function between<B extends Box>(from: B, to: B, part: number): B {
  const way = (was: number, is: number) => was + (is - was) * part
  return {
    ...to,
    x: way(from.x, to.x),
    y: way(from.y, to.y),
    size: way(from.size, to.size),
    fill: way(from.fill, to.fill),
  }
}
