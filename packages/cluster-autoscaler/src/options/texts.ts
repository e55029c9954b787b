/** Parsers of flag values. */
import type { GpuRange, ResourceRange } from './options.ts'
import type { LogSeverity } from './process-options.ts'

/** `MIN:MAX` with 0 <= MIN <= MAX; otherwise undefined. */
export function rangeOf(text: string): ResourceRange | undefined {
  const [, low = '', high = ''] = /^(\d+):(\d+)$/.exec(text) ?? []
  const range = { min: Number(low), max: Number(high) }
  return low !== '' && Number.isSafeInteger(range.max) && range.min <= range.max ? range : undefined
}

/** `TYPE:MIN:MAX`; otherwise undefined. */
export function gpuRangeOf(text: string): GpuRange | undefined {
  const [type = '', ...rest] = text.split(':')
  const range = rangeOf(rest.join(':'))
  return type === '' || range === undefined ? undefined : { type, ...range }
}

/** `HOST:PORT`; the host may be empty. */
export function listenAddressOf(text: string): { readonly host: string; readonly port: number } | undefined {
  const [, host = '', digits = ''] = /^(.*):(\d{1,5})$/s.exec(text) ?? []
  const port = Number(digits)
  return digits === '' || port > 65_535 ? undefined : { host: host.replace(/^\[(.*)\]$/, '$1'), port }
}

const severities: readonly LogSeverity[] = ['INFO', 'WARNING', 'ERROR', 'FATAL']

/** By name or by number. */
export function severityOf(text: string): LogSeverity | undefined {
  return severities.find((name, at) => name === text.toUpperCase() || String(at) === text)
}

export function leastSevere(...given: readonly LogSeverity[]): LogSeverity {
  return severities.find((each) => given.includes(each)) ?? 'INFO'
}
