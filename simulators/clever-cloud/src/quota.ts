/** How NodeGroups use the quota of an organisation (clever-cloud.md 2.3). */
import { ownValue } from '@tenon/api'
import type { FlavorSize } from '@tenon/provider-clever-cloud'
import type { QuotaAmount } from './settings.ts'

/** GB that the platform counts for a node, more than its kernel reports. */
const nominalMemoryGb: Readonly<Record<string, number>> = { '2XS': 4, XS: 8, S: 12, M: 16, L: 24, XL: 32 }

const gbInKi = 10 ** 9 / 1024

/** The quota that these nodes of a flavor use. */
export function amountOf({ name, cpu, memoryKi }: FlavorSize, nodes: number): QuotaAmount {
  const memoryGb = ownValue(nominalMemoryGb, name) ?? Math.ceil(memoryKi / gbInKi)
  return { cpu: cpu * nodes, memoryGb: memoryGb * nodes }
}

const none: QuotaAmount = { cpu: 0, memoryGb: 0 }

export function sumOf(amounts: Iterable<QuotaAmount>): QuotaAmount {
  let sum = none
  for (const { cpu, memoryGb } of amounts) sum = { cpu: sum.cpu + cpu, memoryGb: sum.memoryGb + memoryGb }
  return sum
}

/** Whether both amounts are within the limit. */
export function isWithin(amount: QuotaAmount, limit: QuotaAmount): boolean {
  return amount.cpu <= limit.cpu && amount.memoryGb <= limit.memoryGb
}
