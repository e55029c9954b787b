/** Formats amounts, prices and times. */
import { ownValue, priceText } from '@tenon/api'
import type { Look } from './paint.ts'
import type { PriceSum, Share } from '../model/view.ts'

const bytesPattern = /^(memory|ephemeral-storage|storage|hugepages-.*|.*\/.*memory)$/
const units = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'] as const

/** An amount in canonical units: `1.5`, `12.4Gi`, `3`; `?` if unknown. */
export function amountText(resource: string, amount: number | undefined): string {
  if (amount === undefined) return '?'
  if (resource === 'cpu') return String(Math.round(amount / 10) / 100)
  if (!bytesPattern.test(resource)) return String(amount)
  let [value, at] = [amount, 0]
  while (Math.abs(value) >= 1024 && at < units.length - 1) {
    value /= 1024
    at++
  }
  return `${value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)}${units[at] ?? ''}`
}

/** Requests as a fraction of allocatable, 0 to 1 and above; undefined if unknown. */
export function partOf(shares: Readonly<Record<string, Share>>, resource: string): number | undefined {
  const { used, allocatable } = ownValue(shares, resource) ?? {}
  return used === undefined || allocatable === undefined || allocatable <= 0 ? undefined : used / allocatable
}

/** `31%`; `?` if unknown. */
export function percentText(part: number | undefined): string {
  return part === undefined ? '?' : `${Math.round(part * 100)}%`
}

/** As in eks-node-viewer: above 90 % is good, above 60 % is medium. */
export function lookOf(part: number | undefined): Look | undefined {
  if (part === undefined) return 'dim'
  return part > 0.9 ? 'good' : part > 0.6 ? 'ok' : 'bad'
}

/** A bar of `width` columns. */
export function barText(part: number | undefined, width: number): string {
  const full = Math.min(width, Math.max(0, Math.round((part ?? 0) * width)))
  return '█'.repeat(full) + '░'.repeat(width - full)
}

/** `EUR 0.412/hour EUR 300.760/month ?1`: the number of unknown prices, which the sum does not include. */
export function sumText({ perHour, perMonth, unpriced }: PriceSum, currency: string | undefined): string {
  const of = (sum: number | undefined) =>
    sum === undefined ? '?' : `${currency === undefined ? '' : `${currency} `}${priceText(sum, '?', 3)}`
  const unknown = unpriced === 0 ? '' : ` ?${unpriced}`
  return `${of(perHour)}/hour ${of(perMonth)}/month${unknown}`
}

const spans = [
  [365 * 86_400, 'y'],
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'm'],
  [1, 's'],
] as const

/** An age: `45s`, `5m`, `3h`; empty without a timestamp. */
export function ageText(timestamp: string | undefined, nowMs: number): string {
  const ms = nowMs - Date.parse(timestamp ?? '')
  return Number.isNaN(ms) ? '' : durationText(ms)
}

/** `45s`, `5m`, `3h`; negative durations count as 0. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const [size, letter] = spans.find(([each]) => seconds >= each * (each === 1 ? 0 : 2)) ?? [1, 's']
  return `${Math.floor(seconds / size)}${letter}`
}
