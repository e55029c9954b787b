/** Rounds prices, everywhere in the same way. The page uses it too, so this file must not import anything. */

/**
 * The amount as an integer in units of the last of `digits` decimals. Halves round up, regardless of their
 * binary representation.
 */
export function roundedUnits(amount: number, digits: number): number {
  return Math.round(Number((amount * 10 ** digits).toPrecision(12)))
}

/**
 * Rounds `total` and `parts` to `digits` decimals so that the parts add up to the total. The parts with the
 * largest remainders are rounded up, so none is off by a whole unit.
 * @param parts non-negative parts of `total`.
 */
export function roundedParts(
  parts: readonly number[],
  total: number,
  digits: number,
): { readonly parts: readonly number[]; readonly total: number } {
  const scale = 10 ** digits
  const units = roundedUnits(total, digits)
  const floors = parts.map((part) => Math.floor(part * scale))
  const missing = units - floors.reduce((sum, floor) => sum + floor, 0)
  const raised = new Set(
    parts
      .map((part, at) => ({ at, remainder: part * scale - (floors[at] ?? 0) }))
      .toSorted((a, b) => b.remainder - a.remainder || a.at - b.at)
      .slice(0, Math.max(0, missing))
      .map(({ at }) => at),
  )
  return {
    parts: floors.map((floor, at) => (floor + (raised.has(at) ? 1 : 0)) / scale),
    total: units / scale,
  }
}
