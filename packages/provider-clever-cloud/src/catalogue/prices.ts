/** Node prices, as far as they are known without the platform (clever-cloud.md 5.1, 20). */
import type { PricePerHour } from '@tenon/api'
import { builtInFlavors, type FlavorSize } from './flavors.ts'

/** Euros, or multiples of the price of the smallest flavor if no prices in euros are configured. */
export type PriceUnit = 'EUR' | '2XS-equivalents'

/** Euros per hour for a vCPU and for a GB of memory, from the price list of the public beta. */
const eurosPerCpu = 0.00277777777
const eurosPerGb = 0.00555555555

/** The memory that Clever Cloud bills, in GB; the kernel reports less. */
const billedGb: ReadonlyMap<string, number> = new Map([
  ['2XS', 4],
  ['XS', 8],
  ['S', 12],
  ['M', 16],
  ['L', 24],
  ['XL', 32],
])

const builtIn: ReadonlyMap<string, FlavorSize> = new Map(builtInFlavors.map((size) => [size.name, size]))

/** Euros per hour in the price list; undefined for a flavor that is not listed. */
export function listedPrice(flavor: string): PricePerHour {
  const size = builtIn.get(flavor)
  const gb = billedGb.get(flavor)
  return size && gb && priceInEuros(size.cpu, gb)
}

/** Euros per hour at the rates of the price list. */
export function priceInEuros(cpu: number, gb: number): number {
  return roundedTo4(cpu * eurosPerCpu + gb * eurosPerGb)
}

/** The price as a multiple of that of `unit`: one third by vCPUs, two thirds by memory. */
export function relativePrice(size: FlavorSize, unit: FlavorSize): number {
  return roundedTo4(size.cpu / unit.cpu / 3 + ((size.memoryKi / unit.memoryKi) * 2) / 3)
}

/** Four decimals, halves away from zero; prices are not negative. */
function roundedTo4(price: number): number {
  return Math.round(price * 1e4) / 1e4
}
