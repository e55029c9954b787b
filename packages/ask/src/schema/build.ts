/**
 * Builds JSON Schemas that the type checker compares with the printed types: a field that is added, removed or
 * renamed does not compile until the schema is changed too. No object may have additional fields.
 */

export type JsonSchema = Readonly<Record<string, unknown>>

/** A schema of exactly this type: `T` is in both positions of a function, so it is invariant. */
export interface Schema<T> {
  readonly json: JsonSchema
  readonly isOptional?: false
  readonly typed?: (value: T) => T
}

export interface OptionalSchema<T> {
  readonly json: JsonSchema
  readonly isOptional: true
  readonly typed?: (value: T) => T
}

/** A schema for each field; a field that may be undefined is optional, as JSON omits it. */
export type Fields<T> = {
  readonly [Name in keyof T]-?: Partial<Pick<T, Name>> extends Pick<T, Name>
    ? OptionalSchema<Exclude<T[Name], undefined>>
    : undefined extends T[Name]
      ? OptionalSchema<Exclude<T[Name], undefined>>
      : Schema<T[Name]>
}

const described = (about: string): JsonSchema => (about === '' ? {} : { description: about })

export function text(about = ''): Schema<string> {
  return { json: { type: 'string', ...described(about) } }
}

/** RFC 3339. */
export function time(about = ''): Schema<string> {
  return {
    json: {
      type: 'string',
      pattern: String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`,
      ...described(about),
    },
  }
}

export function decimal(about = ''): Schema<number> {
  return { json: { type: 'number', ...described(about) } }
}

/** A non-negative integer. */
export function count(about = ''): Schema<number> {
  return { json: { type: 'integer', minimum: 0, ...described(about) } }
}

export function truth(about = ''): Schema<boolean> {
  return { json: { type: 'boolean', ...described(about) } }
}

export function only<const T extends string | number | boolean>(value: T, about = ''): Schema<T> {
  return { json: { const: value, ...described(about) } }
}

/** One of the members of a union of strings, each with its meaning; empty if the word is clear. */
export function words<T extends string>(meanings: Readonly<Record<T, string>>): Schema<T> {
  const explained = Object.entries<string>(meanings).filter(([, meaning]) => meaning !== '')
  return {
    json: {
      enum: Object.keys(meanings),
      ...described(explained.map(([word, meaning]) => `${word}: ${meaning}`).join('; ')),
    },
  }
}

export function list<T>(item: Schema<T>, about = ''): Schema<readonly T[]> {
  return { json: { type: 'array', items: item.json, ...described(about) } }
}

export function union<A, B>(a: Schema<A>, b: Schema<B>): Schema<A | B> {
  return { json: { anyOf: [a.json, b.json] } }
}

/** A map with arbitrary keys. */
export function byName<T>(value: Schema<T>, about = ''): Schema<Readonly<Record<string, T>>> {
  return { json: { type: 'object', additionalProperties: value.json, ...described(about) } }
}

export function optional<T>({ json }: Schema<T>): OptionalSchema<T> {
  return { json, isOptional: true }
}

export function object<T extends object>(fields: Fields<T>, about = ''): Schema<T> {
  return { json: { ...objectJson(fields), ...described(about) } }
}

interface AnyField {
  readonly json: JsonSchema
  readonly isOptional?: boolean
}

/** Like {@link object}, for fields of several types. */
export function objectJson(...parts: readonly object[]): JsonSchema {
  const all = parts.flatMap((fields): readonly (readonly [string, AnyField])[] => Object.entries(fields))
  return {
    type: 'object',
    properties: Object.fromEntries(all.map(([name, { json }]) => [name, json])),
    required: all.flatMap(([name, { isOptional = false }]) => (isOptional ? [] : [name])),
    additionalProperties: false,
  }
}

type KindOf<T> = T extends { readonly kind: infer Kind extends string } ? Kind : never

/** One of several objects that differ in `kind`. */
export function oneOfKind<T extends { readonly kind: string }>(
  schemas: { readonly [Kind in KindOf<T>]: Schema<Extract<T, { readonly kind: Kind }>> },
  about = '',
): Schema<T> {
  const all = Object.values<{ readonly json: JsonSchema }>(schemas)
  return { json: { oneOf: all.map(({ json }) => json), ...described(about) } }
}

/** A value of this type whose schema is defined elsewhere, such as by Kubernetes. */
export function foreign<T>(json: JsonSchema, about = ''): Schema<T> {
  return { json: { ...json, ...described(about) } }
}
