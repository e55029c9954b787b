import { ownValue } from '@tenon/api'
import type { FieldError } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'

/** Collects field errors in order. */
export class Findings {
  readonly errors: FieldError[] = []

  required(field: string, detail = ''): void {
    this.errors.push({ kind: 'required', field, detail })
  }

  invalid(field: string, value: unknown, detail: string): void {
    this.errors.push({ kind: 'invalid', field, value, detail })
  }

  forbidden(field: string, detail: string): void {
    this.errors.push({ kind: 'forbidden', field, detail })
  }

  duplicate(field: string, value: unknown): void {
    this.errors.push({ kind: 'duplicate', field, value, detail: '' })
  }

  tooLong(field: string, most: number): void {
    this.errors.push({ kind: 'tooLong', field, detail: `may not be more than ${most} bytes` })
  }

  tooMany(field: string, count: number, most: number): void {
    const detail = `must have at most ${most} items`
    this.errors.push({ kind: 'tooMany', field, value: count, detail })
  }

  notFound(field: string, value: unknown): void {
    this.errors.push({ kind: 'notFound', field, value, detail: '' })
  }

  /** Reports a value that is set but not in `supported`. */
  oneOf(field: string, value: unknown, supported: readonly string[]): void {
    if (value === undefined || supported.includes(value as string)) return
    const words = [...supported].sort().map((one) => JSON.stringify(one))
    this.errors.push({ kind: 'notSupported', field, value, detail: `supported values: ${words.join(', ')}` })
  }

  notNegative(field: string, value: unknown): void {
    if (typeof value === 'number' && value < 0)
      this.invalid(field, value, 'must be greater than or equal to 0')
  }

  /** Reports a change of an immutable field. */
  immutable(field: string, now: unknown, before: unknown, same: (a: unknown, b: unknown) => boolean): void {
    if (!same(now, before)) this.invalid(field, now, 'field is immutable')
  }
}

/** The texts of a list field. */
export function textsOf(record: Loose | undefined, field: string): readonly string[] {
  const list: unknown = ownValue(record, field)
  return Array.isArray(list) ? list.filter((each): each is string => typeof each === 'string') : []
}

/** A list field; empty if it is absent or not a list. */
export function listOf(record: Loose | undefined, field: string): readonly Loose[] {
  const list: unknown = ownValue(record, field)
  return Array.isArray(list)
    ? (list as Loose[]).filter((item) => typeof item === 'object' && item !== null)
    : []
}
