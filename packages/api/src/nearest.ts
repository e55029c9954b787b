/**
 * The one of `names` that `name` was probably meant to be; undefined when none is near.
 * @param limit letters that may differ.
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

/** Letters to insert, take out or replace to make one of the other. */
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
