/**
 * Runs `work` for each item with limited concurrency; returns the results in the order of the items. Rejects
 * with the first error.
 */
export async function inParallel<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results = new Map<number, R>()
  const rest = items.entries()
  const worker = async () => {
    for (const [at, item] of rest) results.set(at, await work(item))
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker))
  return items.flatMap((_, at) => {
    const result = results.get(at)
    return result === undefined ? [] : [result]
  })
}
