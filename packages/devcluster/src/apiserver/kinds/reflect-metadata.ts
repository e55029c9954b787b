/**
 * The three functions of the `reflect-metadata` proposal that the injection container inside
 * `@peculiar/x509` calls. Import this file before that library.
 */
const metadata = new WeakMap<object, Map<unknown, unknown>>()

function own(key: unknown, target: object): unknown {
  return metadata.get(target)?.get(key)
}

function inherited(key: unknown, target: object): unknown {
  for (let at: object | null = target; at !== null; at = Object.getPrototypeOf(at) as object | null)
    if (metadata.get(at)?.has(key) === true) return own(key, at)
  return undefined
}

function define(key: unknown, value: unknown, target: object): void {
  const entries = metadata.get(target) ?? new Map<unknown, unknown>()
  metadata.set(target, entries.set(key, value))
}

const reflect = Reflect as unknown as Record<string, unknown>
reflect['getMetadata'] ??= inherited
reflect['getOwnMetadata'] ??= own
reflect['defineMetadata'] ??= define
