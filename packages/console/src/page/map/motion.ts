/** Squares on their way from where they were to where they are. */
import type { Box } from './layout.ts'

const durationMs = 350

/** Moves squares between pictures; without motion they are where they are at once. */
export class Motion<B extends Box> {
  readonly #grows: boolean
  /** Where those of {@link #to} that move were, by their ids; undefined of one that is new. */
  #from: ReadonlyMap<string, B | undefined> = new Map()
  #to: readonly B[] = []
  #gone: readonly B[] = []
  #startMs = Number.NEGATIVE_INFINITY

  /** @param grows what is new grows, and what has gone shrinks; otherwise both are seen at once. */
  constructor({ grows }: { readonly grows: boolean }) {
    this.#grows = grows
  }

  /** @param isStill no motion is wanted. */
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

  /** Most of thousands stay while some move: those that stay are the same objects in each frame. */
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

/** As large as that part of it, around the same middle. */
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
