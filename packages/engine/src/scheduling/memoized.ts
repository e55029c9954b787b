/** Caches the results of a function by its argument. */
export function memoized<K extends object, V>(workOut: (key: K) => V): (key: K) => V {
  const known = new Map<K, V>()
  return (key) => knownOr(known, key, () => workOut(key))
}

/** The value of a key; if there is none yet, `workOut` makes it. */
export function knownOr<K, V>(known: Kept<K, V>, key: K, workOut: () => V): V {
  if (known.has(key)) return known.get(key) as V
  const value = workOut()
  known.set(key, value)
  return value
}

type Kept<K, V> = Pick<Map<K, V>, 'get' | 'has'> & { set(key: K, value: V): unknown }
