import type { CloudProvider } from './contract.ts'

/**
 * The object with some of its methods replaced. Everything else it offers, optional parts included, stays its own,
 * so that nothing can be forgotten here.
 */
export function decorated<T extends Partial<NoInfer<M>>, M extends object = CloudProvider>(
  object: T,
  methods: Partial<NoInfer<M>>,
): T {
  const replaced = new Map<string | symbol, unknown>(Object.entries(methods))
  return new Proxy(object, {
    get(target, key) {
      if (replaced.has(key)) return replaced.get(key)
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
