/** A provider with limited stock, or delays, of some instances. */
import { admitsValue, type InstanceType, labels, type NodeClaim } from '@tenon/api'
import { ProviderError, type ProviderInstance } from '@tenon/provider'
import { defaultCatalogue, KwokProvider } from '@tenon/provider-kwok'
import type { Clock } from '@tenon/runtime'

/** The driver of the devices of {@link deviceType}. */
export const deviceDriver = 'gpu.gangs.test'
export const deviceType = 'm-8x-amd64-linux'

/** The types of `kwok`, one of which has a device. */
export function catalogueWithDevice(): readonly InstanceType[] {
  const resourceSliceTemplates = [{ driver: deviceDriver, pool: 'node', devices: [{ name: 'gpu-0' }] }]
  return defaultCatalogue().map((type) =>
    type.name === deviceType ? { ...type, resourceSliceTemplates } : type,
  )
}

/** The provider `kwok`, which launches the cheapest type that a claim allows and that is in stock. */
export class StockedProvider extends KwokProvider {
  /** Remaining instances by `TYPE/ZONE`; others are unlimited. */
  readonly stock = new Map<string, number>()
  /** Delay of each instance of a NodePool after the previous one, in milliseconds. */
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
