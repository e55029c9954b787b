/** Prices of Machines, from an annotation or from a price file (cluster-api.md 3, 12). */
import { decimalPrice, ownValue, type PriceList, type PricePerHour } from '@tenon/api'
import type { ClusterApiNames } from '../names.ts'
import type { MachineDeployment } from '../objects.ts'
import { shortened } from './capacity.ts'
import type { Findings } from './findings.ts'

/** The price of a Machine per hour. An invalid annotation makes it unknown, even if the file has a price. */
export function priceOf(
  { metadata: { annotations } }: MachineDeployment,
  instanceType: string,
  prices: PriceList,
  { price }: Pick<ClusterApiNames, 'price'>,
  findings: Findings,
): PricePerHour {
  const text = ownValue(annotations, price)
  if (text === undefined) return prices.pricesPerHour.get(instanceType)
  const found = decimalPrice(text)
  if (found === undefined)
    findings.warnings.push(
      `annotation ${price} is "${shortened(text)}", so its price is unknown; use a decimal number such as 0.25`,
    )
  return found
}

/** `0.25 EUR`, or only the number. */
export function priceText(pricePerHour: number, { currency }: PriceList): string {
  return currency === undefined ? String(pricePerHour) : `${pricePerHour} ${currency}`
}
