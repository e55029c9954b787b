/** Reading single values of options as Karpenter reads them (operations.md 2). */
import { parseDuration } from '@tenon/api'
import type { OptionDefinition } from './definitions.ts'

/** Where a value comes from: a variable reads a little otherwise than a flag. */
export type Source = 'flag' | 'variable'

/** What an option may be; undefined where the text is not a value of its kind. */
export function valueOf(
  { kind, choices = [] }: Pick<OptionDefinition, 'kind' | 'choices'>,
  value: string,
  source: Source,
): string | number | boolean | undefined {
  switch (kind) {
    case 'text':
      return value
    case 'name':
      return value === '' ? undefined : value
    case 'choice':
      return choices.includes(value) ? value : undefined
    case 'list':
      return value.split(',').includes('') ? undefined : value
    case 'integer':
      return source === 'flag' ? prefixedInteger(value) : decimalInteger(value)
    case 'booleanOrAuto':
      return value === 'auto' ? value : valueOf({ kind: 'boolean' }, value, source)
    case 'boolean':
      return source === 'flag' ? flagBooleans.get(value) : booleanWords.get(value)
    case 'duration':
      return parseDuration(value)
  }
}

/** What a value of the kind looks like, for messages. */
export function expected({ kind, choices = [] }: OptionDefinition): string {
  switch (kind) {
    case 'text':
      return 'use a non-empty value'
    case 'name':
      return 'give a name'
    case 'choice':
      return `give ${choices.filter((each) => each !== '').join(' or ')}`
    case 'list':
      return 'use stdout, stderr or file paths, separated by commas'
    case 'integer':
      return 'use an integer'
    case 'boolean':
      return 'use true or false'
    case 'booleanOrAuto':
      return 'use true, false or auto'
    case 'duration':
      return 'use a duration such as 10s or 1m30s'
  }
}

/** The words for true and false that variables and feature gates know. */
export const booleanWords: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((word) => [word, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((word) => [word, false] as const),
])

const flagBooleans: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
])

function decimalInteger(text: string): number | undefined {
  return /^[+-]?\d+$/.test(text) ? safe(Number(text)) : undefined
}

/** With `0x`, `0o` or `0b` before it in that base; a zero alone before it means eight. */
function prefixedInteger(text: string): number | undefined {
  const [, sign = '', digits = ''] = /^([+-]?)(\w+)$/.exec(text) ?? []
  const octal = /^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits
  if (!/^(?:0[xX][\da-fA-F]+|0[oO][0-7]+|0[bB][01]+|[1-9]\d*|0)$/.test(octal)) return undefined
  const value = safe(Number(octal))
  return value === undefined || sign !== '-' ? value : -value
}

function safe(value: number): number | undefined {
  return Number.isSafeInteger(value) ? value : undefined
}
