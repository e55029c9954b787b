/** How long a provider takes and how it fails, by controller (scheduling.md 13.4). */
import { type CloudProvider, isProviderError } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'
import type { Metrics } from '../metrics/metrics.ts'

/** Methods that are measured, by the name they have in the metrics. */
const methods: ReadonlyMap<PropertyKey, string> = new Map([
  ['create', 'Create'],
  ['delete', 'Delete'],
  ['get', 'Get'],
  ['list', 'List'],
  ['getInstanceTypes', 'GetInstanceTypes'],
  ['isDrifted', 'IsDrifted'],
])

/** The provider as one controller calls it; each call is measured under the controller's name. */
export function measuredProvider(
  provider: CloudProvider,
  controller: string,
  { metrics, clock }: { readonly metrics: Metrics; readonly clock: Pick<Clock, 'monotonic'> },
): CloudProvider {
  // A proxy, so that nothing a provider offers, optional parts included, can be forgotten here.
  return new Proxy(provider, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== 'function') return value
      const call = value.bind(target) as (...values: readonly unknown[]) => unknown
      const method = methods.get(key)
      if (method === undefined) return call
      return async (...values: readonly unknown[]) => {
        const series = { controller, method, provider: provider.name }
        const start = clock.monotonic()
        try {
          return await call(...values)
        } catch (error) {
          metrics.cloudProviderErrors.inc({ ...series, error: errorName(error) })
          throw error
        } finally {
          metrics.cloudProviderDuration.observe(series, (clock.monotonic() - start) / 1000)
        }
      }
    },
  })
}

/** Only errors that the core acts upon have a name. */
function errorName(error: unknown): string {
  if (isProviderError(error, 'insufficientCapacity')) return 'InsufficientCapacityError'
  if (isProviderError(error, 'nodeClaimNotFound')) return 'NodeClaimNotFoundError'
  if (isProviderError(error, 'nodeClassNotReady')) return 'NodeClassNotReadyError'
  return ''
}
