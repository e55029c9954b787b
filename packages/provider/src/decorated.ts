import type { CloudProvider } from './contract.ts'

/**
 * The provider with some of its methods replaced. Everything else it offers, optional parts included, stays its own,
 * so that nothing can be forgotten here.
 */
export function decorated<T extends Partial<CloudProvider>>(provider: T, methods: Partial<CloudProvider>): T {
  const replaced = new Map<string | symbol, unknown>(Object.entries(methods))
  return new Proxy(provider, {
    get(target, key) {
      if (replaced.has(key)) return replaced.get(key)
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
