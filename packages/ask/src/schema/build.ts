/**
 * JSON Schemas that follow the types of what is printed: a field that a type gains, loses or renames breaks the
 * compilation until its schema does the same. No object may have fields that its schema does not name.
 */

export type JsonSchema = Readonly<Record<string, unknown>>

/** A schema of values of a type, and of no other: the type stands in both places of a function. */
export interface Schema<T> {
  readonly json: JsonSchema
  readonly isOptional?: false
  readonly typed?: (value: T) => T
}

/** Of a field that may be absent. */
export interface OptionalSchema<T> {
  readonly json: JsonSchema
  readonly isOptional: true
  readonly typed?: (value: T) => T
}

/** A schema for each field. JSON leaves a field out that is undefined. */
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

/** An instant in RFC 3339. */
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

/** How many there are of something. */
export function count(about = ''): Schema<number> {
  return { json: { type: 'integer', minimum: 0, ...described(about) } }
}

export function truth(about = ''): Schema<boolean> {
  return { json: { type: 'boolean', ...described(about) } }
}

/** One value alone. */
export function only<const T extends string | number | boolean>(value: T, about = ''): Schema<T> {
  return { json: { const: value, ...described(about) } }
}

/** One of the words of a type, each with its meaning; empty where the word says it. */
export function words<T extends string>(meanings: Readonly<Record<T, string>>): Schema<T> {
  const told = Object.entries<string>(meanings).filter(([, meaning]) => meaning !== '')
  return {
    json: {
      enum: Object.keys(meanings),
      ...described(told.map(([word, meaning]) => `${word}: ${meaning}`).join('; ')),
    },
  }
}

export function list<T>(item: Schema<T>, about = ''): Schema<readonly T[]> {
  return { json: { type: 'array', items: item.json, ...described(about) } }
}

/** A value of one type or of another. */
export function union<A, B>(a: Schema<A>, b: Schema<B>): Schema<A | B> {
  return { json: { anyOf: [a.json, b.json] } }
}

/** Values by names that nobody knows before. */
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

/** What {@link object} says, for fields of several types. */
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

/** One of the objects that a field `kind` tells apart. */
export function oneOfKind<T extends { readonly kind: string }>(
  schemas: { readonly [Kind in KindOf<T>]: Schema<Extract<T, { readonly kind: Kind }>> },
  about = '',
): Schema<T> {
  const all = Object.values<{ readonly json: JsonSchema }>(schemas)
  return { json: { oneOf: all.map(({ json }) => json), ...described(about) } }
}

/** Whatever JSON can say, of this type; where others define what it is. */
export function foreign<T>(json: JsonSchema, about = ''): Schema<T> {
  return { json: { ...json, ...described(about) } }
}
