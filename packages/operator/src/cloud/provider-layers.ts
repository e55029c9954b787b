/** Layers around a provider: each changes some of its methods and passes the others through. */
import {
  type InstanceType,
  isKnownPrice,
  labels,
  mostPricePerHour,
  type NodeClaim,
  type NodePool,
  type Offering,
  type Unavailability,
} from '@tenon/api'
import type { Cache, ClusterIdentity } from '@tenon/kube'
import { type CloudProvider, decorated, isProviderError, ProviderError } from '@tenon/provider'
import { type Clock, currentTrace, type Logger, traced, type Tracer } from '@tenon/runtime'
import type { Metrics } from '../metrics/metrics.ts'
import { type LearnedCapacity, nodeClassSettingsAnnotation } from '../state/nodes/learned-capacity.ts'
import type { LaunchGuard } from './launch-guard.ts'

export interface CapacityLearning {
  /** What instances turned out to have. */
  readonly capacity: LearnedCapacity
  /** Says what they should have. */
  readonly provider: CloudProvider
}

/** Makes types no larger than their instances turned out to be. */
export function correctedProvider({ capacity, provider }: CapacityLearning): CloudProvider {
  const getInstanceTypes: CloudProvider['getInstanceTypes'] = async (pool, signal) =>
    capacity.corrected(pool, await provider.getInstanceTypes(pool, signal))
  return decorated(provider, { getInstanceTypes })
}

/** Annotation of a new claim with the settings of its node class: what its instance teaches is about these. */
export function settingsNote(
  learning: CapacityLearning | undefined,
  { spec }: NodePool,
): Readonly<Record<string, string>> {
  const settings = learning?.capacity.settingsOf(spec.template.spec.nodeClassRef)
  return settings === undefined ? {} : { [nodeClassSettingsAnnotation]: settings }
}

/** Makes prices that are no number from 0 to {@link mostPricePerHour} unknown, and logs them. */
export function checkedPrices<T extends Pick<CloudProvider, 'getInstanceTypes'>>(
  provider: T,
  logger: Pick<Logger, 'error'>,
): T {
  // The same object for the same type: decisions keep what they compiled of types.
  const checked = new WeakMap<InstanceType, InstanceType>()
  const check = (type: InstanceType): InstanceType => {
    const known = checked.get(type)
    if (known !== undefined) return known
    const wrong = type.offerings.filter((offering) => !isReadable(offering))
    const result = wrong.length === 0 ? type : withoutWrongPrices(type)
    if (wrong.length > 0)
      logger.error('ignored invalid prices', {
        'instance-type': type.name,
        prices: wrong.map(({ pricePerHour }) => String(pricePerHour)).join(', '),
        allowed: `0 to ${mostPricePerHour}`,
      })
    checked.set(type, result)
    return result
  }
  const getInstanceTypes: CloudProvider['getInstanceTypes'] = async (pool, signal) => {
    const types = await provider.getInstanceTypes(pool, signal)
    return types.some((type) => check(type) !== type) ? types.map(check) : types
  }
  return decorated(provider, { getInstanceTypes })
}

const isReadable = ({ pricePerHour }: Offering): boolean =>
  pricePerHour === undefined || isKnownPrice(pricePerHour)

function withoutWrongPrices(type: InstanceType): InstanceType {
  const offerings = type.offerings.map((offering) =>
    isReadable(offering) ? offering : { ...offering, pricePerHour: undefined },
  )
  return { ...type, offerings }
}

/** Adds to each known price what every node of the NodePool costs beside its instance; catalogues may have it already. */
export function surchargedProvider(
  provider: CloudProvider,
  surchargeOf: (pool: NodePool) => number,
): CloudProvider {
  // The same object for the same surcharge: decisions keep what they compiled of types.
  const known = new WeakMap<InstanceType, Map<number, InstanceType>>()
  const surcharged = (type: InstanceType, surchargePerHour: number): InstanceType => {
    const bySurcharge = known.get(type) ?? new Map<number, InstanceType>()
    known.set(type, bySurcharge)
    const made = bySurcharge.get(surchargePerHour) ?? {
      ...type,
      offerings: type.offerings.map(({ surchargePerHour: before = 0, ...offering }) =>
        offering.pricePerHour === undefined
          ? offering
          : {
              ...offering,
              surchargePerHour,
              pricePerHour: offering.pricePerHour - before + surchargePerHour,
            },
      ),
    }
    bySurcharge.set(surchargePerHour, made)
    return made
  }
  const isCharged = ({ offerings }: InstanceType, wanted: number) =>
    offerings.every(
      ({ surchargePerHour = 0, pricePerHour }) => pricePerHour === undefined || surchargePerHour === wanted,
    )
  const getInstanceTypes: CloudProvider['getInstanceTypes'] = async (pool, signal) => {
    const types = await provider.getInstanceTypes(pool, signal)
    const surcharge = surchargeOf(pool)
    if (surcharge === 0 && types.every((type) => isCharged(type, 0))) return types
    return types.map((type) => (isCharged(type, surcharge) ? type : surcharged(type, surcharge)))
  }
  return decorated(provider, { getInstanceTypes })
}

/**
 * Lists no offerings as available that failed recently, and launches around them.
 * @param listing lists the types that a launch may choose from; not measured as a call of the launch.
 */
export function guardedProvider(
  provider: CloudProvider,
  listing: Pick<CloudProvider, 'getInstanceTypes'>,
  guard: LaunchGuard,
  nodePools: Cache<NodePool>,
): CloudProvider {
  const getInstanceTypes: CloudProvider['getInstanceTypes'] = async (pool, signal) =>
    guard.usable(await provider.getInstanceTypes(pool, signal), pool)
  const typesOf = async (claim: NodeClaim, signal?: AbortSignal): Promise<readonly InstanceType[]> => {
    const pool = nodePools.get({ name: claim.metadata.labels?.[labels.nodePool] ?? '' })
    if (pool === undefined) return []
    try {
      return await listing.getInstanceTypes(pool, signal)
    } catch (error) {
      signal?.throwIfAborted()
      if (!isProviderError(error)) throw error
      // The provider decides whether it can launch without a list.
      return []
    }
  }
  const create: CloudProvider['create'] = async (claim, signal) => {
    const types = await typesOf(claim, signal)
    const createOf = (offered: readonly InstanceType[]) =>
      provider.create(claim, signal, types.length === 0 ? undefined : offered)
    return await guard.launch(claim, types, createOf, signal)
  }
  return decorated(provider, { getInstanceTypes, create })
}

/** Deletes and reboots no instance if this cluster is not the one that launched it. */
export function identifiedProvider(
  provider: CloudProvider,
  identity: Pick<ClusterIdentity, 'mayRemove' | 'refusal'>,
): CloudProvider {
  const checked = async (what: string): Promise<void> => {
    if (!(await identity.mayRemove()))
      throw new ProviderError('other', `the instance is not ${what}: ${identity.refusal}`)
  }
  return decorated(provider, {
    async delete(claim, signal) {
      await checked('deleted')
      await provider.delete(claim, signal)
    },
    ...(provider.reboot && {
      async reboot(claim, signal) {
        await checked('rebooted')
        await provider.reboot?.(claim, signal)
      },
    }),
  })
}

/** Names of measured methods in metrics (scheduling.md 13.4). */
const methods: ReadonlyMap<PropertyKey, string> = new Map([
  ['create', 'Create'],
  ['delete', 'Delete'],
  ['reboot', 'Reboot'],
  ['get', 'Get'],
  ['list', 'List'],
  ['getInstanceTypes', 'GetInstanceTypes'],
  ['isDrifted', 'IsDrifted'],
])

/** Measures calls under the name of the controller that makes them. Within a span, each is a span, too. */
export function measuredProvider(
  provider: CloudProvider,
  controller: string,
  {
    metrics,
    clock,
    tracer,
  }: {
    readonly metrics: Metrics
    readonly clock: Pick<Clock, 'monotonic'>
    readonly tracer?: Tracer | undefined
  },
): CloudProvider {
  // A proxy passes on everything that a provider has, such as optional methods.
  return new Proxy(provider, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== 'function') return value
      const call = value.bind(target) as (...values: readonly unknown[]) => Promise<unknown>
      const method = methods.get(key)
      if (method === undefined) return call
      return async (...values: readonly unknown[]) => {
        const series = { controller, method, provider: provider.name }
        const start = clock.monotonic()
        try {
          return await traced(
            currentTrace() && tracer,
            `cloud ${method}`,
            { attributes: { 'tenon.provider': provider.name } },
            () => call(...values),
          )
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

/** Only errors that the core handles have a name. */
function errorName(error: unknown): string {
  if (isProviderError(error, 'insufficientCapacity')) return 'InsufficientCapacityError'
  if (isProviderError(error, 'nodeClaimNotFound')) return 'NodeClaimNotFoundError'
  if (isProviderError(error, 'nodeClassNotReady')) return 'NodeClassNotReadyError'
  return ''
}

/**
 * Makes all offerings unavailable to NodePools that may not launch now.
 * @param whyNot why a NodePool may not launch; undefined if it may.
 */
export function soldOutProvider(
  provider: CloudProvider,
  whyNot: (pool: string) => Unavailability | undefined,
): CloudProvider {
  const known = new WeakMap<InstanceType, { readonly why: string; readonly soldOut: InstanceType }>()
  const soldOut = (type: InstanceType, unavailability: Unavailability): InstanceType => {
    const why = JSON.stringify(unavailability)
    const made = known.get(type)
    if (made?.why === why) return made.soldOut
    const offerings = type.offerings.map((offering) =>
      offering.available ? { ...offering, available: false, unavailability } : offering,
    )
    const fresh = { why, soldOut: { ...type, offerings } }
    known.set(type, fresh)
    return fresh.soldOut
  }
  const getInstanceTypes: CloudProvider['getInstanceTypes'] = async (pool, signal) => {
    const types = await provider.getInstanceTypes(pool, signal)
    const why = whyNot(pool.metadata.name)
    return why === undefined ? types : types.map((type) => soldOut(type, why))
  }
  return decorated(provider, { getInstanceTypes })
}
