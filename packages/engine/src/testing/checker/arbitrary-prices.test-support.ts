/** Random clusters whose types differ in price and size as far as catalogues allow. */
import { type InstanceType, mostPricePerHour, type Offering, type PricePerHour } from '@tenon/api'
import * as fc from 'fast-check'
import type { PoolInput, SchedulingInput } from '../../input/input.ts'
import { cluster } from './arbitrary-clusters.test-support.ts'
import type { Profile } from './arbitrary-pods.test-support.ts'

/** Not known, free, equal to others, tiny, ordinary, and as high as a catalogue may say. */
export const price: fc.Arbitrary<PricePerHour> = fc.oneof(
  fc.constantFrom(undefined, 0, 1, 1),
  fc.constantFrom(Number.MIN_VALUE, 1e-12, 1e-6, 1e6, mostPricePerHour),
  fc.double({ min: 0.001, max: 100, noNaN: true }),
)

/** Types from a tenth of a core to a thousand cores, as multiples of what they have. */
const size = fc.constantFrom(1, 1, 1, 0.1, 16, 1000)

const scaled = (type: InstanceType, factor: number): InstanceType => ({
  ...type,
  capacity: Object.fromEntries(
    Object.entries(type.capacity).map(([name, amount]) => [
      name,
      name === 'cpu' || name === 'memory' ? Math.floor(amount * factor) : amount,
    ]),
  ),
})

/** A catalogue in which some types cost the same, or nothing that anybody knows, has one price for all of them. */
function repriced(type: InstanceType): fc.Arbitrary<InstanceType> {
  return fc
    .tuple(size, price, fc.boolean(), fc.tuple(...type.offerings.map(() => price)))
    .map(([factor, common, isUniform, own]) => ({
      ...scaled(type, factor),
      offerings: type.offerings.map(
        (offering, index): Offering => ({ ...offering, pricePerHour: isUniform ? common : own[index] }),
      ),
    }))
}

/** A random cluster with prices far apart, and each of its pods up to a few dozen times. */
export function wildCluster(profile: Profile): fc.Arbitrary<SchedulingInput> {
  return fc.tuple(cluster(profile), fc.constantFrom(1, 1, 4, 12)).chain(([input, copies]) => {
    const types = [...new Set(input.pools.flatMap(({ instanceTypes }) => instanceTypes))]
    return fc.tuple(...types.map(repriced)).map((changed): SchedulingInput => {
      const byType = new Map(types.map((type, index) => [type, changed[index] ?? type]))
      const pools = input.pools.map(
        (pool): PoolInput => ({
          ...pool,
          instanceTypes: pool.instanceTypes.map((type) => byType.get(type) ?? type),
        }),
      )
      const pods = input.pods.flatMap((pod) =>
        Array.from({ length: copies }, (_, copy) =>
          copy === 0
            ? pod
            : { ...pod, metadata: { ...pod.metadata, uid: `${pod.metadata.uid}-${String(copy)}` } },
        ),
      )
      return { ...input, pools, pods }
    })
  })
}
