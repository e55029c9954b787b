import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtinDefinitions, openApiV2 } from '../../schema/index.ts'
import { encodeOpenApiV2 } from './encode-openapi.ts'
import { WireReader } from './wire-reader.ts'

type Json = Record<string, unknown>
type Read = (value: unknown) => unknown
type Fields = Readonly<Record<number, (result: Json, value: unknown) => void>>

const text: Read = (value) => new TextDecoder().decode(value as Uint8Array)
const bool: Read = (value) => value === 1n
/** A value as YAML, which here is JSON. */
const any: Read = (value) => JSON.parse(text(only(value, 2)) as string)

/** Reads one message. A number that is not in `fields` fails the test. */
function read(fields: Fields): Read {
  return (value) => {
    const result: Json = {}
    for (const { number, value: content } of entries(value)) {
      const take = fields[number]
      assert.ok(take, `field ${number}`)
      take(result, content)
    }
    return result
  }
}

function* entries(value: unknown) {
  const reader = new WireReader(value as Uint8Array)
  for (let entry = reader.next(); entry !== undefined; entry = reader.next()) yield entry
}

/** The content of a message that has but one field. */
function only(value: unknown, number: number): unknown {
  const all = [...entries(value)]
  assert.deepEqual(
    all.map((entry) => entry.number),
    [number],
  )
  return all[0]?.value
}

const one =
  (key: string, of: Read): Fields[number] =>
  (result, value) => {
    result[key] = of(value)
  }
const many =
  (key: string, of: Read): Fields[number] =>
  (result, value) => {
    result[key] = [...((result[key] as unknown[] | undefined) ?? []), of(value)]
  }
/** An entry of a map: its name and its value. */
const named =
  (of: Read): Fields[number] =>
  (result, value) => {
    const [name, content] = [...entries(value)]
    assert.deepEqual([name?.number, content?.number], [1, 2])
    result[text(name?.value) as string] = of(content?.value)
  }
const extension = named(any)

const schema: Read = (value) =>
  read({
    1: one('$ref', text),
    2: one('format', text),
    4: one('description', text),
    5: one('default', any),
    19: many('required', text),
    20: many('enum', any),
    21: one('additionalProperties', (item) => {
      const [choice] = [...entries(item)]
      return choice?.number === 2 ? bool(choice.value) : schema(choice?.value)
    }),
    22: one('type', (item) => text(only(item, 1))),
    23: one('items', (item) => schema(only(item, 1))),
    25: one('properties', read({ 1: named(schema) })),
    31: extension,
  })(value)

const bodyParameter = read({
  2: one('name', text),
  3: one('in', text),
  4: one('required', bool),
  5: one('schema', schema),
})
const pathParameter = read({
  1: one('required', bool),
  2: one('in', text),
  4: one('name', text),
  5: one('type', text),
  19: one('uniqueItems', bool),
})
const queryParameter = read({
  2: one('in', text),
  4: one('name', text),
  6: one('type', text),
  20: one('uniqueItems', bool),
})

const parameter: Read = (item) => {
  const [choice] = [...entries(only(item, 1))]
  if (choice?.number === 1) return bodyParameter(choice.value)
  const [place] = [...entries(choice?.value)]
  return place?.number === 4 ? pathParameter(place.value) : queryParameter(place?.value)
}

const response: Read = (item) =>
  read({ 1: one('description', text), 2: one('schema', (choice) => schema(only(choice, 1))) })(only(item, 1))

const operation = read({
  5: one('operationId', text),
  6: many('produces', text),
  7: many('consumes', text),
  8: many('parameters', parameter),
  9: one('responses', read({ 1: named(response) })),
  13: extension,
})

const pathItem = read({
  2: one('get', operation),
  3: one('put', operation),
  4: one('post', operation),
  5: one('delete', operation),
  8: one('patch', operation),
  9: many('parameters', parameter),
})

const document = read({
  1: one('swagger', text),
  2: one('info', read({ 1: one('title', text), 2: one('version', text) })),
  8: one('paths', read({ 2: named(pathItem) })),
  9: one('definitions', read({ 1: named(schema) })),
})

/** What JSON says the same as: lists without items cannot be told from absent ones in protobuf. */
function withoutEmptyLists(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_key, part: unknown) =>
      Array.isArray(part) && part.length === 0 ? undefined : part,
    ),
  )
}

test('the whole document survives being encoded', () => {
  const original = openApiV2(builtinDefinitions())
  assert.deepEqual(document(encodeOpenApiV2(original)), withoutEmptyLists(original))
})

test('defaults, enums, maps of any value and extensions of every form are encoded', () => {
  const definitions = {
    Pool: {
      type: 'object',
      description: 'Gr\u00f6\u00dfe \u2014 \u6c34',
      required: ['size'],
      properties: {
        size: { type: 'string', default: { a: ['x', 1, true] }, enum: ['', 'a: b', 2, null] },
        open: { additionalProperties: true },
        closed: { additionalProperties: false },
        empty: {},
        any: { additionalProperties: {} },
      },
      'x-kubernetes-list-map-keys': ['name', 'on'],
      'x-kubernetes-patch-merge-key': 'name',
      'x-kubernetes-preserve-unknown-fields': true,
      'x-kubernetes-group-version-kind': [{ group: '', kind: 'Pool', version: 'v1' }],
    },
  }
  assert.deepEqual(document(encodeOpenApiV2({ swagger: '2.0', paths: {}, definitions })), {
    swagger: '2.0',
    paths: {},
    definitions,
  })
})

test('content of any length is framed right', () => {
  for (const length of [0, 1, 100, 127, 128, 16_383, 16_384, 300_000]) {
    const definitions = { A: { description: 'x'.repeat(length) }, B: { type: 'string' } }
    assert.deepEqual(document(encodeOpenApiV2({ definitions })), { definitions })
  }
})

test('keys without a place in the encoding are left out', () => {
  const definitions = { A: { type: 'string', nullable: true, format: undefined } }
  assert.deepEqual(document(encodeOpenApiV2({ definitions, made: 'up' })), {
    definitions: { A: { type: 'string' } },
  })
})
