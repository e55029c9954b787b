/**
 * Memoizes a function of an object for the object's lifetime.
 * @param workOut reads nothing but the object, and nothing of it that ever changes.
 */
export function perObject<Key extends object, Value extends {} | null>(
  workOut: (object: Key) => Value,
): (object: Key) => Value {
  const known = new WeakMap<Key, Value>()
  return (object) => {
    let value = known.get(object)
    if (value === undefined) {
      value = workOut(object)
      known.set(object, value)
    }
    return value
  }
}
