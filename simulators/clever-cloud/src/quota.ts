/** What the NodeGroups of an organisation take of its quota (clever-cloud.md 2.3). */
import { ownValue } from '@tenon/api'
import type { FlavorSize } from '@tenon/provider-clever-cloud'
import type { QuotaAmount } from './settings.ts'

/** GB that the platform counts for a node; more than its kernel sees. */
const nominalMemoryGb: Readonly<Record<string, number>> = { '2XS': 4, XS: 8, S: 12, M: 16, L: 24, XL: 32 }

const gbInKi = 10 ** 9 / 1024

/** What so many nodes of a flavor count. */
export function amountOf({ name, cpu, memoryKi }: FlavorSize, nodes: number): QuotaAmount {
  const memoryGb = ownValue(nominalMemoryGb, name) ?? Math.ceil(memoryKi / gbInKi)
  return { cpu: cpu * nodes, memoryGb: memoryGb * nodes }
}

/** Nothing. */
const none: QuotaAmount = { cpu: 0, memoryGb: 0 }

export function sumOf(amounts: Iterable<QuotaAmount>): QuotaAmount {
  let sum = none
  for (const { cpu, memoryGb } of amounts) sum = { cpu: sum.cpu + cpu, memoryGb: sum.memoryGb + memoryGb }
  return sum
}

/** Whether an amount is within a limit, in both respects. */
export function isWithin(amount: QuotaAmount, limit: QuotaAmount): boolean {
  return amount.cpu <= limit.cpu && amount.memoryGb <= limit.memoryGb
}
