/** Random instance types in the file format of the provider `kwok`. */
import { labels } from '@tenon/api'
import type { Dice } from '../../simulation/workload/workload-context.ts'
import type { Names } from './names.ts'

export const zones = ['zone-a', 'zone-b', 'zone-c'] as const

/** A random set of types; undefined: the provider's own catalogue. */
export function aCatalogue(dice: Dice, names: Names): readonly object[] | undefined {
  if (dice.chance(0.15)) return undefined
  const prices = dice.oneOf(['linear', 'linear', 'wild', 'equal', 'free', 'tiny'] as const)
  return Array.from({ length: dice.between(1, 10) }, (_, index) => aType(dice, names, prices, index))
}

type Prices = 'linear' | 'wild' | 'equal' | 'free' | 'tiny'

function aType(dice: Dice, names: Names, prices: Prices, index: number): object {
  const cpu = dice.oneOf(['500m', '1', '2', '2', '4', '4', '8', '16', '64', '1000'])
  const cores = cpu === '500m' ? 0.5 : Number(cpu)
  const memory = Math.max(1, Math.round(cores * dice.oneOf([1, 2, 4, 8])))
  const hasDevice = dice.chance(0.25)
  const offered = zones.filter((_, at) => dice.chance(hasDevice && at === 0 ? 0.2 : 0.75))
  const inZones = offered.length === 0 ? [dice.oneOf(zones)] : offered
  const types = dice.oneOf([['on-demand'], ['on-demand'], ['spot'], ['on-demand', 'spot']])
  return {
    name: `type-${index}`,
    architecture: dice.oneOf(['amd64', 'amd64', 'amd64', 'arm64']),
    operatingSystems: ['linux'],
    resources: {
      cpu,
      memory: `${memory}Gi`,
      pods: dice.oneOf(['110', '110', '110', '8', '4']),
      'ephemeral-storage': dice.oneOf(['20Gi', '100Gi']),
      ...(hasDevice && { [`example.com/${names.device}`]: dice.oneOf(['1', '2', '8']) }),
    },
    offerings: inZones.flatMap((zone) =>
      types.map((capacityType) => ({
        Price: priceOf(dice, prices, cores + memory / 8) * (capacityType === 'spot' ? 0.4 : 1),
        Available: true,
        Requirements: [
          { key: labels.zone, operator: 'In', values: [zone] },
          { key: labels.capacityType, operator: 'In', values: [capacityType] },
        ],
      })),
    ),
  }
}

function priceOf(dice: Dice, prices: Prices, size: number): number {
  if (prices === 'free') return 0
  if (prices === 'equal') return 0.1
  if (prices === 'tiny') return size * 1e-6
  if (prices === 'wild') return size * dice.oneOf([0, 0.001, 0.05, 1, 1000])
  return Math.round(size * 400 * (1 + dice.between(-20, 20) / 100)) / 10_000
}
