/** A price list of users: prices by instance type in a file. */
import { isRecord } from './is-record.ts'
import { isLabelValue } from './label-syntax.ts'
import { ownValue } from './own.ts'
import { isKnownPrice, mostPricePerHour, type PricePerHour } from './prices.ts'

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
/** Longer values are cut in messages. */
const shownLength = 60

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

/** A price written as a decimal number; undefined if it is none. */
export function decimalPrice(text: string): PricePerHour {
  const price = decimal.test(text) ? Number(text) : undefined
  return isKnownPrice(price) ? price : undefined
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
      const price = typeof value === 'string' ? decimalPrice(value) : isKnownPrice(value) ? value : undefined
      if (price === undefined)
        throw new FileError(
          `${path}${instanceType}: is ${JSON.stringify(value).slice(0, shownLength)}; write a price from 0 to ${mostPricePerHour}, such as 0.25`,
        )
      return [instanceType, price]
    }),
  )
}
