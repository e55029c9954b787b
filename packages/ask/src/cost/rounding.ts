/** How prices are rounded, everywhere: also on the page, so that this file takes from no other one. */

/** The amount in units of the last of `digits` decimals. Halves go up, whatever the binary fraction. */
export function roundedUnits(amount: number, digits: number): number {
  return Math.round(Number((amount * 10 ** digits).toPrecision(12)))
}

/**
 * `total` and `parts` rounded to `digits` decimals. The parts with the largest remainders are rounded up until the
 * sum is right: none is off by a whole unit of the last decimal.
 * @param parts of `total`, none below 0.
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
