/** Prices of Machines, from an annotation or from a file by instance type (cluster-api.md 3, 12). */
import {
  isKnownPrice,
  isLabelValue,
  isRecord,
  mostPricePerHour,
  ownValue,
  type PricePerHour,
} from '@tenon/api'
import type { ClusterApiNames } from '../names.ts'
import type { MachineDeployment } from '../objects.ts'
import { shortened } from './capacity.ts'
import type { Findings } from './findings.ts'

/** Prices per hour by instance type. */
export interface PriceList {
  /** ISO 4217, for all prices; absent if the file names none. */
  readonly currency?: string
  readonly pricesPerHour: ReadonlyMap<string, number>
}

/** For an installation without the file. */
export const noPrices: PriceList = { pricesPerHour: new Map() }

/** A file is valid as a whole or not at all. The error names the line or the field, and the fix. */
export type PriceFileReading =
  | { readonly ok: PriceList; readonly error?: undefined }
  | { readonly error: string; readonly ok?: undefined }

const example = '{"currency": "EUR", "prices": {"m.large": "0.12"}}'
const decimal = /^\d+(\.\d+)?$/

/** An error in the file. */
class FileError extends Error {}

/** Reads a price file: prices by instance type, directly or in `prices` next to a `currency`. */
export function readPriceFile(text: string): PriceFileReading {
  try {
    return { ok: priceListIn(parsed(text)) }
  } catch (error) {
    if (!(error instanceof FileError)) throw error
    return { error: error.message }
  }
}

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
  const found = priceIn(text)
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

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new FileError(`the file is not JSON: ${String(error)}; write ${example}`)
  }
}

function priceListIn(root: unknown): PriceList {
  if (!isRecord(root)) throw new FileError(`the file contains no object; use ${example}`)
  if (!isRecord(ownValue(root, 'prices'))) return { pricesPerHour: pricesIn(root, '') }
  const { currency, prices, ...rest } = root
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined)
    throw new FileError(`${unknown}: is unknown; only currency and prices are allowed at the top level`)
  if (currency !== undefined && !(typeof currency === 'string' && /^[A-Z]{3}$/.test(currency)))
    throw new FileError('currency: must be three capital letters, such as EUR')
  const pricesPerHour = pricesIn(prices as object, 'prices.')
  return { ...(currency !== undefined && { currency }), pricesPerHour }
}

function pricesIn(object: object, path: string): ReadonlyMap<string, number> {
  return new Map(
    Object.entries(object).map(([instanceType, value]: [string, unknown]) => {
      if (instanceType === '' || !isLabelValue(instanceType))
        throw new FileError(`${path}${instanceType}: not a valid name of an instance type`)
      const price = typeof value === 'string' ? priceIn(value) : isKnownPrice(value) ? value : undefined
      if (price === undefined)
        throw new FileError(
          `${path}${instanceType}: is ${shortened(JSON.stringify(value))}; write a price from 0 to ${mostPricePerHour}, such as 0.25`,
        )
      return [instanceType, price]
    }),
  )
}

function priceIn(text: string): PricePerHour {
  const price = decimal.test(text) ? Number(text) : undefined
  return isKnownPrice(price) ? price : undefined
}
