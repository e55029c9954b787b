/** Hourly prices: built-in ones, and those of a file that replace them. */
import { isKnownPrice, isRecord, mostPricePerHour, ownValue, setOwn } from '@tenon/api'

export const currencies = ['EUR', 'CHF', 'USD'] as const
export type Currency = (typeof currencies)[number]

/** Price per hour by the key in the price list. */
type PriceList = Readonly<Record<string, number>>

/** Keys as in the vendor's list; the numbers are the same in every currency. */
const builtInPrices: PriceList = {
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

/** Longest first, as some are suffixes of others: `extra_large` before `large`. */
const sizes = [
  'extra_large',
  'colossus',
  'titan48c',
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

type Families = Readonly<Record<string, string>>

/**
 * Families in the list's keys. Plain `gpu` is the A30 in the built-in list, and the P100 in the public one.
 */
const publicFamilies: Families = { '': 'standard', gpu_a5000: 'gpua5000', gpu_3080ti: 'gpu3080ti' }
const builtInFamilies: Families = { ...publicFamilies, gpu: 'gpua30' }

/** Prices of a file, by currency; a currency that is not in the file is absent. */
export type PriceFile = Readonly<Partial<Record<Currency, PriceList>>>

/** Price per hour by instance type name (`standard.extra-large`): from the file, else built in. */
export function pricesByType(currency: Currency, file: PriceFile = {}): ReadonlyMap<string, number> {
  return new Map([...named(builtInPrices, builtInFamilies), ...named(file[currency] ?? {}, publicFamilies)])
}

/**
 * Reads a price file: JSON with one object per currency. Keys are those of the vendor's public list
 * (`running_cpu_huge`) or type names (`cpu.huge`), values are prices per hour; other keys are ignored.
 * @throws Error with the position and the fix.
 */
export function parsePriceFile(text: string): PriceFile {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw new Error('it is not JSON')
  }
  if (!isRecord(parsed)) throw new Error('it must be an object with the key EUR, CHF or USD')
  const lists = Object.entries(parsed).map(([name, list]): [Currency, PriceList] => {
    const currency = currencies.find((known) => known === name.toUpperCase())
    if (currency === undefined) throw new Error(`"${name}" is not one of ${currencies.join(', ')}`)
    if (!isRecord(list)) throw new Error(`${name} must be an object of prices per hour`)
    return [currency, pricesIn(name, list)]
  })
  return Object.fromEntries(lists)
}

function pricesIn(currency: string, list: Readonly<Record<string, unknown>>): PriceList {
  const prices: Record<string, number> = {}
  for (const [key, value] of Object.entries(list)) {
    if (typeNameOf(key, publicFamilies) === undefined) continue
    const price = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN
    if (value === '' || !isKnownPrice(price)) {
      throw new Error(
        `${currency}.${key} is ${JSON.stringify(value)}; give a price per hour from 0 to ${mostPricePerHour} such as 0.0467`,
      )
    }
    setOwn(prices, key, price)
  }
  return prices
}

function named(list: PriceList, families: Families): [string, number][] {
  return Object.entries(list).flatMap(([key, price]): [string, number][] => {
    const name = typeNameOf(key, families)
    return name === undefined ? [] : [[name, price]]
  })
}

function typeNameOf(key: string, families: Families): string | undefined {
  if (/^[a-z0-9]+\.[a-z0-9-]+$/.test(key)) return key
  if (!key.startsWith('running_')) return undefined
  const rest = key.slice('running_'.length)
  const size = sizes.find((candidate) => rest === candidate || rest.endsWith(`_${candidate}`))
  if (size === undefined) return undefined
  const family = rest.slice(0, Math.max(0, rest.length - size.length - 1))
  return `${ownValue(families, family) ?? family}.${size.replaceAll('_', '-')}`
}
