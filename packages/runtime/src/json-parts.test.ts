import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assert as holds, constantFrom, dictionary, jsonValue, property, string } from 'fast-check'
import { inTurns, jsonParts } from './json-parts.ts'

test('the parts make up the JSON of the whole, whatever is between them', () => {
  holds(
    property(dictionary(string(), jsonValue()), constantFrom(',', ',\n'), (value, apart) => {
      const parts = [...jsonParts(value, apart)]
      assert.deepEqual(JSON.parse(parts.join('\n')), JSON.parse(JSON.stringify(value)))
    }),
  )
  const long = { empty: [], absent: undefined, rows: Array.from({ length: 1001 }, (_, at) => ({ at })) }
  const parts = [...jsonParts(long)]
  assert.deepEqual(JSON.parse(parts.join('\n')), { empty: [], rows: long.rows })
  assert.ok(Math.max(...parts.map(({ length }) => length)) < 4000)
  const large = { rows: Array.from({ length: 100 }, (_, at) => ({ at, text: 'x'.repeat(5000) })) }
  assert.ok(Math.max(...[...jsonParts(large)].map(({ length }) => length)) < 40_000)
})

test('others have their turn between two parts', async () => {
  const seen: string[] = []
  const other = setImmediate(() => seen.push('another'))
  for await (const part of inTurns(['a', 'b'])) seen.push(part)
  clearImmediate(other)
  assert.deepEqual(seen, ['a', 'another', 'b'])
})
