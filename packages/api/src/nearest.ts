/**
 * The entry of `names` that `name` is probably a typo of, or undefined.
 * @param limit maximum edit distance.
 */
export function nearest(
  name: string,
  names: readonly string[],
  limit: number = Math.max(1, Math.floor(name.length / 4)),
): string | undefined {
  const near = names
    .map((each) => ({ each, away: distance(name.toLowerCase(), each.toLowerCase()) }))
    .filter(({ away }) => away <= limit)
    .toSorted((a, b) => a.away - b.away)
  return near[0]?.each
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (const [i, letter] of a.split('').entries()) {
    const next = [i + 1]
    for (const [j, other] of b.split('').entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
