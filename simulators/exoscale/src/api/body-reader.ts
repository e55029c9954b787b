import { ownValue } from '@tenon/api'
import { invalid } from './refusal.ts'

type Fields = Readonly<Record<string, unknown>>

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Reads typed fields of a body and collects all problems; unknown fields are ignored. */
export class BodyReader {
  readonly #fields: Fields
  readonly #errors: string[] = []

  constructor(fields: Fields) {
    this.#fields = fields
  }

  /** Throws a 400 if any field was invalid. */
  finish(): void {
    if (this.#errors.length > 0) throw invalid(this.#errors)
  }

  has(name: string): boolean {
    return ownValue(this.#fields, name) !== undefined
  }

  string(name: string, bounds: { readonly min: number; readonly max: number }): string | undefined {
    const value = ownValue(this.#fields, name)
    if (value === undefined) return undefined
    if (typeof value !== 'string') return this.#complain(`${name} must be a string`)
    if (value.length >= bounds.min && value.length <= bounds.max) return value
    return this.#complain(`${name} must have ${bounds.min} to ${bounds.max} characters`)
  }

  oneOf<T extends string>(name: string, values: readonly T[]): T | undefined {
    const value = ownValue(this.#fields, name)
    if (value === undefined) return undefined
    if (values.includes(value as T)) return value as T
    return this.#complain(`${name} must be one of ${values.join(', ')}`)
  }

  boolean(name: string): boolean | undefined {
    const value = ownValue(this.#fields, name)
    if (value === undefined || typeof value === 'boolean') return value
    return this.#complain(`${name} must be a boolean`)
  }

  requiredInteger(name: string, bounds: { readonly min: number; readonly max: number }): number {
    const value = ownValue(this.#fields, name)
    if (typeof value === 'number' && Number.isInteger(value) && value >= bounds.min && value <= bounds.max) {
      return value
    }
    this.#complain(`${name} must be an integer from ${bounds.min} to ${bounds.max}`)
    return bounds.min
  }

  /** A string map; null is returned as null if `nullable`. */
  labels(name: string, nullable: boolean): Record<string, string> | null | undefined {
    const value = ownValue(this.#fields, name)
    if (value === undefined) return undefined
    if (value === null && nullable) return null
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return this.#complain(`${name} must be an object`)
    }
    for (const [key, text] of Object.entries(value)) {
      if (key === '') this.#complain(`${name}: a key must not be empty`)
      if (typeof text !== 'string') this.#complain(`${name}: the value of "${key}" must be a string`)
    }
    return value as Record<string, string>
  }

  /** The id of a required `{id}` object. */
  requiredReference(name: string): string {
    const id = idOf(ownValue(this.#fields, name))
    if (id === undefined) this.#complain(`${name} must be an object with the id of a resource`)
    return id ?? ''
  }

  /** The ids of an optional list of `{id}` objects without duplicates. */
  references(name: string): string[] {
    return this.#list(name, idOf, 'ids')
  }

  requiredString(name: string, bounds: { readonly min: number; readonly max: number }): string {
    if (!this.has(name)) this.#complain(`${name} is required`)
    return this.string(name, bounds) ?? ''
  }

  /** The names of an optional list of `{name}` objects without duplicates. */
  names(name: string): string[] {
    return this.#list(name, nameOf, 'objects with the name of a resource')
  }

  /** The name of an optional `{name}` object, as a list. */
  name(name: string): string[] {
    if (!this.has(name)) return []
    const found = nameOf(ownValue(this.#fields, name))
    if (found !== undefined) return [found]
    return this.#complain(`${name} must be an object with the name of a resource`) ?? []
  }

  /** The ids of a list of bare ids without duplicates. */
  ids(name: string): string[] {
    const read = (item: unknown) => (typeof item === 'string' && uuidPattern.test(item) ? item : undefined)
    return this.#list(name, read, 'ids')
  }

  #list(name: string, read: (item: unknown) => string | undefined, what: string): string[] {
    const value = ownValue(this.#fields, name)
    if (value === undefined) return []
    if (!Array.isArray(value)) return this.#complain(`${name} must be a list`) ?? []
    const items = value.map(read)
    if (items.includes(undefined)) return this.#complain(`${name} must hold ${what}`) ?? []
    if (new Set(items).size < items.length) this.#complain(`${name} must hold unique items`)
    return items as string[]
  }

  #complain(message: string): undefined {
    this.#errors.push(message)
    return undefined
  }
}

function idOf(value: unknown): string | undefined {
  const id = (value as { readonly id?: unknown } | null | undefined)?.id
  return typeof id === 'string' && uuidPattern.test(id) ? id : undefined
}

function nameOf(value: unknown): string | undefined {
  const name = (value as { readonly name?: unknown } | null | undefined)?.name
  return typeof name === 'string' && name.length > 0 && name.length <= 255 ? name : undefined
}
