/** Amounts, prices and times as people read them. */
import { ownValue, priceText } from '@tenon/api'
import type { Look } from './paint.ts'
import type { PriceSum, Share } from '../model/view.ts'

const bytesPattern = /^(memory|ephemeral-storage|storage|hugepages-.*|.*\/.*memory)$/
const units = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'] as const

/** Of a resource in canonical units: `1.5`, `12.4Gi`, `3`; `?` when it is not known. */
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

/** Part of what there is that is asked for, 0 to 1 and above; undefined when nobody can tell. */
export function partOf(shares: Readonly<Record<string, Share>>, resource: string): number | undefined {
  const { used, allocatable } = ownValue(shares, resource) ?? {}
  return used === undefined || allocatable === undefined || allocatable <= 0 ? undefined : used / allocatable
}

/** `31%`; `?` when nobody can tell. */
export function percentText(part: number | undefined): string {
  return part === undefined ? '?' : `${Math.round(part * 100)}%`
}

/** eks-node-viewer's: above 90 % is good, above 60 % is middling. */
export function lookOf(part: number | undefined): Look | undefined {
  if (part === undefined) return 'dim'
  return part > 0.9 ? 'good' : part > 0.6 ? 'ok' : 'bad'
}

/** A bar of `width` columns. */
export function barText(part: number | undefined, width: number): string {
  const full = Math.min(width, Math.max(0, Math.round((part ?? 0) * width)))
  return '█'.repeat(full) + '░'.repeat(width - full)
}

/** `EUR 0.412/hour EUR 300.760/month ?1`: how many have no known price is told, and they are in no sum. */
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

/** Time since: `45s`, `5m`, `3h`; empty without one. */
export function ageText(timestamp: string | undefined, nowMs: number): string {
  const ms = nowMs - Date.parse(timestamp ?? '')
  return Number.isNaN(ms) ? '' : durationText(ms)
}

/** `45s`, `5m`, `3h`; what is in the past takes no time. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const [size, letter] = spans.find(([each]) => seconds >= each * (each === 1 ? 0 : 2)) ?? [1, 's']
  return `${Math.floor(seconds / size)}${letter}`
}
