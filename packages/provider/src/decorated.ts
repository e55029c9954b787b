import type { CloudProvider } from './contract.ts'

/**
 * The object with some methods replaced. All other members, also optional ones, stay, so that a decorator cannot forget
 * any.
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
