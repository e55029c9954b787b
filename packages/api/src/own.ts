/** Users choose names, and a plain object inherits members such as `constructor` and `toString`. */

/** Looks up an entry of a dictionary and ignores inherited members. */
export function ownValue<T>(
  dictionary: Readonly<Record<string, T>> | null | undefined,
  name: string,
): T | undefined {
  return dictionary !== undefined && dictionary !== null && Object.hasOwn(dictionary, name)
    ? dictionary[name]
    : undefined
}

/** Sets an entry of a dictionary; works for `__proto__` too. */
export function setOwn<T>(dictionary: Record<string, T>, name: string, value: NoInfer<T>): void {
  if (name !== '__proto__') dictionary[name] = value
  else
    Object.defineProperty(dictionary, name, { value, enumerable: true, configurable: true, writable: true })
}
