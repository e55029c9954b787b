import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assert as holds, dictionary, jsonValue, property, string } from 'fast-check'
import { jsonParts } from './json-parts.ts'

test('the parts make up the JSON of the whole, whatever is between them', () => {
  holds(
    property(dictionary(string(), jsonValue()), (value) => {
      const parts = [...jsonParts(value)]
      assert.deepEqual(JSON.parse(parts.join('\n')), JSON.parse(JSON.stringify(value)))
    }),
  )
  const long = { empty: [], absent: undefined, rows: Array.from({ length: 1001 }, (_, at) => ({ at })) }
  const parts = [...jsonParts(long)]
  assert.deepEqual(JSON.parse(parts.join('\n')), { empty: [], rows: long.rows })
  assert.ok(Math.max(...parts.map(({ length }) => length)) < 4000)
})
