/** Caches the results of a function by its argument. */
export function memoized<K extends object, V>(workOut: (key: K) => V): (key: K) => V {
  const known = new Map<K, V>()
  return (key) => {
    const value = known.has(key) ? (known.get(key) as V) : workOut(key)
    known.set(key, value)
    return value
  }
}
