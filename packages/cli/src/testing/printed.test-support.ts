/** Holds what commands print against the published schemas. */
import { isRecord } from '@tenon/api'
import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { schemas } from '../commands/schema/schemas.ts'

const ajv = new Ajv2020({ allErrors: true, strict: true, strictRequired: false, allowUnionTypes: true })
const validators = new Map<string, ValidateFunction>()

/** Fails with the fields that the schema of the kind does not allow, or misses. */
export function assertMatches(kind: string, value: unknown): void {
  const schema = schemas.get(kind)
  assert.ok(schema, `there is no schema of ${kind}`)
  const validate = validators.get(kind) ?? ajv.compile(schema)
  validators.set(kind, validate)
  const isValid = validate(value)
  const errors = validate.errors?.map(
    ({ instancePath, message, params }) => `${instancePath}: ${message} ${JSON.stringify(params)}`,
  )
  assert.ok(isValid, `${kind}: ${errors?.join('; ')}\n${JSON.stringify(value, null, 1).slice(0, 2000)}`)
}

/** Every document of Tenon in the text, those of a list too, matches the schema of its kind. @returns their kinds. */
export function assertPrinted(text: string): readonly string[] {
  const value: unknown = JSON.parse(text)
  const items = isRecord(value) && value['kind'] === 'List' ? value['items'] : [value]
  assert.ok(Array.isArray(items))
  return items.flatMap((item: unknown): readonly string[] => {
    assert.ok(isRecord(item))
    const { apiVersion, kind } = item
    if (apiVersion !== 'tenon.sh/v1alpha1') return []
    assert.ok(typeof kind === 'string')
    assertMatches(kind, item)
    return [kind]
  })
}
