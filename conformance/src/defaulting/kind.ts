/** How to generate objects of a built-in kind. */
import type { Choices, Make, OddDraw } from './odd-draw.ts'

export interface Kind {
  readonly apiVersion: string
  readonly kind: string
  /** The path after `/apis/<group>/<version>/`, including the namespace. */
  readonly resource: string
  readonly isNamespaced: boolean
  /** Fields besides `metadata`. */
  readonly fields: Make
  readonly names?: Choices
}

export const spec =
  (required: Readonly<Record<string, Choices>>, optional: Readonly<Record<string, Choices>> = {}): Make =>
  (draw) =>
    draw.record({ spec: [(one: OddDraw) => one.record(required, optional)] })

export const record =
  (required: Readonly<Record<string, Choices>>, optional: Readonly<Record<string, Choices>> = {}): Make =>
  (draw) =>
    draw.record(required, optional)

export const listOf =
  (low: number, high: number, make: Make): Make =>
  (draw) =>
    draw.list(low, high, (one) => one.value([make]))
