/** Finds by halving which items make an attempt fail, while as many others as possible take part. */

/** What came of an attempt: its value, or what it failed with. */
export type Attempt<R> =
  | { readonly kind: 'done'; readonly value: R }
  | { readonly kind: 'failed'; readonly error: unknown }

export interface Isolation<T, R> {
  /** Of the attempt with all items that take part; undefined when there was none beside that of the caller. */
  readonly value: R | undefined
  /** Items without which the attempt succeeds, each with what it fails with. */
  readonly culprits: ReadonlyMap<T, unknown>
  /** Items that were not judged when there was no more time. */
  readonly left: readonly T[]
}

export interface Suspicion<T, R> {
  /** Items with which alone an attempt succeeds. */
  readonly kept: readonly T[]
  /** Items of which at least one makes the attempt fail when all take part. */
  readonly suspects: readonly T[]
  /** What the attempt with all of them failed with. */
  readonly error: unknown
  readonly attempt: (items: readonly T[]) => Promise<Attempt<R>>
  readonly mayGoOn: () => boolean
}

/** Takes about twice the logarithm of the number of suspects in attempts, for each culprit. */
export async function isolate<T, R>(suspicion: Suspicion<T, R>): Promise<Isolation<T, R>> {
  const { suspects, attempt, mayGoOn } = suspicion
  const culprits = new Map<T, unknown>()
  const left: T[] = []
  let kept = suspicion.kept
  let value: R | undefined
  const failing: { readonly group: readonly T[]; readonly error: unknown }[] = []
  const judge = async (group: readonly T[]): Promise<void> => {
    if (!mayGoOn()) {
      left.push(...group)
      return
    }
    const items = [...kept, ...group]
    const tried = await attempt(items)
    if (tried.kind === 'failed') failing.push({ group, error: tried.error })
    else {
      kept = items
      value = tried.value
    }
  }
  failing.push({ group: suspects, error: suspicion.error })
  for (let next = failing.pop(); next !== undefined; next = failing.pop()) {
    const { group, error } = next
    const [only] = group
    if (group.length === 1 && only !== undefined) {
      culprits.set(only, error)
      continue
    }
    const middle = group.length >> 1
    await judge(group.slice(0, middle))
    await judge(group.slice(middle))
  }
  return { value, culprits, left }
}
