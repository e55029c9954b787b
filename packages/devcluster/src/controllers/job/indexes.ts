/** Completed indexes of an Indexed Job as text: `0,3-5,7`. */
export function formatIndexes(indexes: Iterable<number>): string {
  const sorted = [...indexes].sort((a, b) => a - b)
  const parts: string[] = []
  for (let first = 0; first < sorted.length; ) {
    let last = first
    while (sorted[last + 1] === (sorted[last] as number) + 1) last++
    parts.push(
      first === last
        ? `${sorted[first]}`
        : `${sorted[first]}${last - first === 1 ? ',' : '-'}${sorted[last]}`,
    )
    first = last + 1
  }
  return parts.join(',')
}

/** The inverse of {@link formatIndexes}; indexes at or above `completions` are dropped. */
export function parseIndexes(text: string | undefined, completions: number): Set<number> {
  const indexes = new Set<number>()
  for (const part of (text ?? '').split(',')) {
    if (part === '') continue
    const [first = '', last = first] = part.split('-')
    for (let index = Number(first); index <= Number(last) && index < completions; index++) indexes.add(index)
  }
  return indexes
}
