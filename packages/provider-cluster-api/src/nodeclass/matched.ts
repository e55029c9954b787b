/** The MachineDeployments of a node class, for its status. */
import { isKnownPrice, type PriceList } from '@tenon/api'
import type { Reading } from '../catalogue/participant.ts'
import { priceText } from '../catalogue/prices.ts'
import type { MatchedDeployment } from '../node-class.ts'

/** Limits the size of the object, which is read often. */
export const mostListed = 100
const longestMessage = 500

/** The first MachineDeployments, as in the status. */
export function matchedDeployments(
  readings: readonly Reading[],
  prices: PriceList,
): readonly MatchedDeployment[] {
  return readings.slice(0, mostListed).map((reading) => matchedDeployment(reading, prices))
}

/** `3 are used: ...`, without a full stop. */
export function foundText(readings: readonly Reading[]): string {
  const used = readings.filter(({ kind }) => kind === 'participant').length
  const excluded = readings.length - used
  const listed = readings.length > mostListed ? `; the first ${mostListed} are listed` : ''
  return `${used} used, ${excluded} not used${listed}`
}

function matchedDeployment(reading: Reading, prices: PriceList): MatchedDeployment {
  if (reading.kind === 'excluded') return { ...reading.key, message: cut(`not used: ${reading.because}`) }
  const { key, typeName, zone, pricePerHour, unavailability, warnings } = reading.participant
  const messages = [...(unavailability === undefined ? [] : [unavailability.because]), ...warnings]
  return {
    ...key,
    instanceType: typeName,
    ...(zone !== '' && { zone }),
    ...(isKnownPrice(pricePerHour) && { price: priceText(pricePerHour, prices) }),
    ...(messages.length > 0 && { message: cut(messages.join('; ')) }),
  }
}

function cut(text: string): string {
  return text.length <= longestMessage ? text : `${text.slice(0, longestMessage - 3)}...`
}
