import { ownValue, setOwn } from '@tenon/api'
import { type JsonSchema, valueSchema } from './json-schema.ts'

/**
 * Sets the defaults of a CRD's schema below existing parents. An explicit null counts as absent if the field is not
 * nullable. Returns the same value if nothing was missing.
 */
export function applySchemaDefaults(value: unknown, schema: JsonSchema): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return defaultItems(value, schema.items)
  return defaultFields(value as Readonly<Record<string, unknown>>, schema)
}

function defaultItems(list: readonly unknown[], items: JsonSchema | undefined): readonly unknown[] {
  if (items === undefined) return list
  let changed: unknown[] | undefined
  for (let index = 0; index < list.length; index++) {
    const item = list[index]
    const next = defaultedField(item, items)
    if (next === item || next === undefined) continue
    changed ??= [...list]
    changed[index] = next
  }
  return changed ?? list
}

function defaultFields(
  record: Readonly<Record<string, unknown>>,
  schema: JsonSchema,
): Readonly<Record<string, unknown>> {
  let changed: Record<string, unknown> | undefined
  const properties = schema.properties ?? {}
  for (const key in properties) {
    const property = ownValue(properties, key)
    if (property === undefined) continue
    const value = ownValue(record, key)
    const next = defaultedField(value, property)
    if (next === value) continue
    changed ??= { ...record }
    if (next === undefined) delete changed[key]
    else setOwn(changed, key, next)
  }
  const values = valueSchema(schema)
  if (values === undefined) return changed ?? record
  for (const key in record) {
    if (Object.hasOwn(properties, key)) continue
    const next = defaultedField(ownValue(record, key), values)
    if (next === ownValue(record, key) || next === undefined) continue
    changed ??= { ...record }
    setOwn(changed, key, next)
  }
  return changed ?? record
}

/** The value of a field with its default; undefined removes it (a null that is not allowed). */
function defaultedField(value: unknown, schema: JsonSchema): unknown {
  const absent = value === undefined || (value === null && schema.nullable !== true)
  return applySchemaDefaults(absent ? schema.default : value, schema)
}
