const parallelWrites = 16

/** Runs `work` for each of `list`, 16 at a time. */
export async function inParallel<T>(list: readonly T[], work: (each: T) => Promise<unknown>): Promise<void> {
  const queue = [...list]
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next)
  }
  await Promise.all(Array.from({ length: Math.min(parallelWrites, list.length) }, worker))
}
