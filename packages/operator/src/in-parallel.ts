/**
 * Works on all items, at most `limit` at a time, and goes on when some fail.
 * @returns the errors of those that failed.
 */
export async function inParallel<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<readonly unknown[]> {
  const failures: unknown[] = []
  const queue = items.values()
  const worker = async () => {
    // One iterator for all workers: each item is taken once.
    for (const item of queue) {
      try {
        await work(item)
      } catch (error) {
        failures.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker))
  return failures
}
