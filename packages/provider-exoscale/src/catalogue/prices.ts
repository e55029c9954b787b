/**
 * Hourly prices built in. The keys are those of the vendor's price list, so that a newer list can be
 * read the same way; the numbers are the same in EUR, CHF and USD.
 */

/** Price per hour by list key. */
export type PriceList = Readonly<Record<string, number>>

export const builtInPrices: PriceList = {
  running_micro: 0.00729,
  running_tiny: 0.01458,
  running_small: 0.02333,
  running_medium: 0.04666,
  running_large: 0.09333,
  running_extra_large: 0.18667,
  running_huge: 0.37334,
  running_mega: 0.74667,
  running_titan: 1.49333,
  running_jumbo: 2.24,
  running_colossus: 2.98666,
  running_cpu_extra_large: 0.23333,
  running_cpu_huge: 0.46666,
  running_cpu_mega: 0.93333,
  running_cpu_titan: 1.86667,
  running_memory_extra_large: 0.14,
  running_memory_huge: 0.28,
  running_memory_mega: 0.56,
  running_memory_titan: 1.12,
  running_storage_extra_large: 0.14,
  running_storage_huge: 0.28,
  running_storage_mega: 0.56,
  running_storage_titan: 1.12,
  running_storage_jumbo: 1.86667,
  running_gpu2_small: 1.375,
  running_gpu2_medium: 2.01389,
  running_gpu2_large: 2.65278,
  running_gpu2_huge: 3.31944,
  running_gpu3_small: 2.13333,
  running_gpu3_medium: 4.26667,
  running_gpu3_large: 8.53333,
  running_gpu3_huge: 17.06667,
  running_gpu_small: 1.16806,
  running_gpu_medium: 1.71111,
  running_gpu_large: 2.25417,
  running_gpu_huge: 2.82083,
  running_gpu_a5000_small: 1.34028,
  running_gpu_3080ti_small: 0.92361,
  running_gpu_a5000_medium: 2.47951,
  running_gpu_3080ti_medium: 1.70868,
  running_gpu_a5000_large: 4.55694,
  running_gpu_3080ti_large: 3.14028,
}

/** Longest first where one ends in another: `extra_large` before `large`. */
const sizes = [
  'extra_large',
  'colossus',
  'medium',
  'jumbo',
  'small',
  'large',
  'micro',
  'titan',
  'huge',
  'mega',
  'tiny',
] as const

const families: Readonly<Record<string, string>> = {
  '': 'standard',
  gpu: 'gpua30',
  gpu_a5000: 'gpua5000',
  gpu_3080ti: 'gpu3080ti',
}

/** Price per hour by instance type name (`standard.extra-large`). Other entries are left out. */
export function pricesByType(list: PriceList): ReadonlyMap<string, number> {
  const prices = new Map<string, number>()
  for (const [key, price] of Object.entries(list)) {
    const name = typeNameOf(key)
    if (name !== undefined) prices.set(name, price)
  }
  return prices
}

function typeNameOf(key: string): string | undefined {
  if (!key.startsWith('running_')) return undefined
  const rest = key.slice('running_'.length)
  const size = sizes.find((candidate) => rest === candidate || rest.endsWith(`_${candidate}`))
  if (size === undefined) return undefined
  const family = rest.slice(0, Math.max(0, rest.length - size.length - 1))
  return `${families[family] ?? family}.${size.replaceAll('_', '-')}`
}
