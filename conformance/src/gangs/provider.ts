/** Instances of which some are there in small numbers only, or late. */
import { admitsValue, type InstanceType, labels, type NodeClaim } from '@tenon/api'
import { ProviderError, type ProviderInstance } from '@tenon/provider'
import { defaultCatalogue, KwokProvider } from '@tenon/provider-kwok'
import type { Clock } from '@tenon/runtime'

/** The driver of the devices that nodes of {@link deviceType} have. */
export const deviceDriver = 'gpu.gangs.test'
export const deviceType = 'm-8x-amd64-linux'

/** The types of `kwok`, one of which has a device. */
export function catalogueWithDevice(): readonly InstanceType[] {
  const resourceSliceTemplates = [{ driver: deviceDriver, pool: 'node', devices: [{ name: 'gpu-0' }] }]
  return defaultCatalogue().map((type) =>
    type.name === deviceType ? { ...type, resourceSliceTemplates } : type,
  )
}

/** The provider `kwok`, which sells the cheapest type that a claim admits as often as it has it. */
export class StockedProvider extends KwokProvider {
  /** Instances that are left, by `TYPE/ZONE`; of others there is no end. */
  readonly stock = new Map<string, number>()
  /** So much later than the one before it comes each instance of a NodePool; in milliseconds. */
  readonly lagMs = new Map<string, number>()
  readonly #clock: Clock
  readonly #launches = new Map<string, number>()
  readonly #prices = new Map(
    defaultCatalogue().map(({ name, offerings }) => [name, offerings[0]?.pricePerHour ?? 0]),
  )

  constructor(deps: ConstructorParameters<typeof KwokProvider>[0]) {
    super(deps)
    this.#clock = deps.runtime.clock
  }

  override async create(claim: NodeClaim, signal?: AbortSignal): Promise<ProviderInstance> {
    const pool = claim.metadata.labels?.[labels.nodePool] ?? ''
    const lagMs = this.lagMs.get(pool)
    if (lagMs !== undefined) {
      const earlier = this.#launches.get(pool) ?? 0
      this.#launches.set(pool, earlier + 1)
      await this.#clock.sleep(earlier * lagMs, signal)
    }
    this.#take(claim)
    return await super.create(claim, signal)
  }

  #take({ spec }: NodeClaim): void {
    const allows = (key: string, value: string) =>
      spec.requirements.every((each) => each.key !== key || admitsValue(each, value))
    const [instanceType] = Array.from(this.#prices)
      .filter(([name]) => allows(labels.instanceType, name))
      .toSorted(([, a], [, b]) => a - b)
      .map(([name]) => name)
    for (const [key, left] of this.stock) {
      const [type = '', zone = ''] = key.split('/')
      if (type !== instanceType || !allows(labels.zone, zone)) continue
      if (left === 0)
        throw new ProviderError('insufficientCapacity', `${key} is sold out`, {
          offerings: [{ instanceType: type, zone, capacityType: 'on-demand' }],
        })
      this.stock.set(key, left - 1)
    }
  }
}
