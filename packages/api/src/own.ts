/** Names that users give are data: a plain object answers to `constructor` and `toString` though nobody put them in. */

/** What a dictionary holds under a name, and nothing that it inherits. */
export function ownValue<T>(
  dictionary: Readonly<Record<string, T>> | null | undefined,
  name: string,
): T | undefined {
  return dictionary !== undefined && dictionary !== null && Object.hasOwn(dictionary, name)
    ? dictionary[name]
    : undefined
}

/** Puts a value into a dictionary under a name, `__proto__` included. */
export function setOwn<T>(dictionary: Record<string, T>, name: string, value: NoInfer<T>): void {
  if (name !== '__proto__') dictionary[name] = value
  else
    Object.defineProperty(dictionary, name, { value, enumerable: true, configurable: true, writable: true })
}
